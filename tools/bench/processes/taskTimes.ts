/** Start and end of containers, to the millisecond. Kubernetes itself reports whole seconds. */
import { spawn, type ChildProcess } from 'node:child_process';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import { end, track } from './child.ts';

/** Start and end of a container (ms since the epoch). */
export interface TaskTime {
  readonly startedAt: number;
  readonly endedAt: number;
}

/** Start or exit of a container. */
export interface TaskEvent {
  readonly container: string;
  readonly kind: 'start' | 'exit';
  readonly at: number;
}

/**
 * Parses a line of `ctr events`.
 * @returns `undefined` for other events, and for processes of `exec` in a container
 */
export function parseTaskEvent(line: string): TaskEvent | undefined {
  const [, day, time, kind, json] =
    /^(\S+) (\S+) \+0000 UTC \S+ \/tasks\/(start|exit) (\{.*\})$/.exec(line) ?? [];
  if (json === undefined || (kind !== 'start' && kind !== 'exit')) return undefined;
  const event = JSON.parse(json) as { container_id: string; id?: string; exited_at?: string };
  if (event.id !== undefined && event.id !== event.container_id) return undefined;
  return {
    container: event.container_id,
    kind,
    at: Date.parse(event.exited_at ?? `${day}T${time}Z`),
  };
}

/** Records the events of a containerd from now on. */
export class TaskTimes {
  readonly #events: ChildProcess;
  readonly #starts = new Map<string, number>();
  readonly #ends = new Map<string, number>();

  /**
   * @param ctr - path of containerd's client
   * @param socket - path of containerd's socket
   */
  constructor(ctr: string, socket: string) {
    const events = track(
      spawn(ctr, ['--address', socket, '--namespace', 'k8s.io', 'events'], {
        stdio: ['ignore', 'pipe', 'inherit'],
      }),
    );
    this.#events = events;
    createInterface({ input: events.stdout }).on('line', (line) => {
      const event = parseTaskEvent(line);
      if (event !== undefined)
        (event.kind === 'start' ? this.#starts : this.#ends).set(event.container, event.at);
    });
  }

  /**
   * Waits until start and end of a container are known.
   * @param containerId - ID as in a pod's status
   */
  async of(containerId: string, withinMs = 10_000): Promise<TaskTime> {
    const id = containerId.replace(/^containerd:\/\//, '');
    for (
      const deadline = performance.now() + withinMs;
      performance.now() < deadline;
      await delay(20)
    ) {
      const startedAt = this.#starts.get(id);
      const endedAt = this.#ends.get(id);
      if (startedAt !== undefined && endedAt !== undefined) return { startedAt, endedAt };
    }
    throw new Error(`container ${id}: containerd reported no start or no end`);
  }

  async stop(): Promise<void> {
    await end(this.#events, 'SIGTERM');
  }
}
