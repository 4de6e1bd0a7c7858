/** The Date header of a response has whole seconds, rounded down (RFC 9110). */
const RESOLUTION_MS = 1_000;

/**
 * Clock of a server, from the Date headers of its responses. It is the clock of this process,
 * corrected by as little as the latest response requires. A process whose clock is right reads its
 * own clock.
 */
export class ServerClock {
  #offsetMs = 0;

  /**
   * Handles the Date header of a response. A header that is missing or is not a date is ignored.
   * @param sentAtMs - time of the request by the clock of this process (ms since the epoch)
   */
  onResponse(date: string | string[] | undefined, sentAtMs: number): void {
    const atMs = Date.parse(String(date));
    if (Number.isNaN(atMs)) return;
    // The server wrote the date between the request and now, and at most one second after it.
    const least = atMs - Date.now();
    const most = atMs + RESOLUTION_MS - sentAtMs;
    this.#offsetMs = Math.min(Math.max(0, least), most);
  }

  /** Returns the time of the server (ms since the epoch). */
  now(): number {
    return Date.now() + this.#offsetMs;
  }
}
