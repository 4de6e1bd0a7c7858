import { randomUUID } from 'node:crypto';
import type { ChannelMessage, Rejection, RunnerMessage } from './runner/wire.ts';
import type { Registration } from './registrations.ts';

/** A runner's open session: how messages reach it. */
export interface Session {
  readonly id: string;
  readonly registration: Registration;
  /** Messages that came while no poll was open. */
  readonly pending: RunnerMessage[];
  /** Present while a poll is open. */
  deliver?: (message: RunnerMessage | undefined) => void;
  /** Present for a session served by a fleet's channel. */
  channel?: Channel;
}

/** One stream that carries the messages of many sessions. */
export interface Channel {
  readonly id: string;
  readonly sessions: Set<Session>;
  send(message: ChannelMessage): void;
}

/** The runners' sessions with their long polls, and which runners are online. */
export class Sessions {
  #byId = new Map<string, Session>();
  #byRunner = new Map<number, Session>();
  #channels = new Map<string, Channel>();
  readonly #offlineAfterMs: number;
  readonly #onListening: (session: Session) => void;

  /** @param onListening called whenever a session can take a message and has none pending */
  constructor(offlineAfterMs: number, onListening: (session: Session) => void) {
    this.#offlineAfterMs = offlineAfterMs;
    this.#onListening = onListening;
  }

  /**
   * Opens a session. A runner has one: a second one conflicts until the first was closed, or silent
   * for long enough.
   */
  open(registration: Registration, channelId?: string): Session | Rejection {
    const existing = this.#byRunner.get(registration.id);
    if (existing && this.online(registration)) return { reason: 'conflict' };
    if (existing) this.close(existing);
    const channel = channelId === undefined ? undefined : this.#channels.get(channelId);
    if (channelId !== undefined && !channel) return { reason: 'session' };
    const session: Session = {
      id: randomUUID(),
      registration,
      pending: [],
      ...(channel ? { channel } : {}),
    };
    channel?.sessions.add(session);
    this.#byId.set(session.id, session);
    this.#byRunner.set(registration.id, session);
    registration.lastSeenMs = Date.now();
    if (channel) this.#onListening(session);
    return session;
  }

  get(id: string): Session | undefined {
    return this.#byId.get(id);
  }

  ofRunner(registration: Registration): Session | undefined {
    return this.#byRunner.get(registration.id);
  }

  close(session: Session): void {
    session.deliver?.(undefined);
    session.channel?.sessions.delete(session);
    this.#byId.delete(session.id);
    if (this.#byRunner.get(session.registration.id) === session)
      this.#byRunner.delete(session.registration.id);
    session.registration.lastSeenMs = Date.now();
  }

  /** Whether the runner listens, or polled recently enough to count as online. */
  online(registration: Registration): boolean {
    const session = this.#byRunner.get(registration.id);
    return (
      session !== undefined &&
      (listening(session) || Date.now() - registration.lastSeenMs < this.#offlineAfterMs)
    );
  }

  /**
   * Waits for a message and returns it. Returns undefined after `pollMs`, or when the client
   * disconnects.
   */
  async poll(
    session: Session,
    pollMs: number,
    gone: AbortSignal,
  ): Promise<RunnerMessage | undefined> {
    session.registration.lastSeenMs = Date.now();
    const pending = session.pending.shift();
    if (pending) return pending;
    session.deliver?.(undefined);
    const message = await new Promise<RunnerMessage | undefined>((resolve) => {
      const deliver = (got: RunnerMessage | undefined): void => {
        clearTimeout(timer);
        gone.removeEventListener('abort', giveUp);
        if (session.deliver === deliver) delete session.deliver;
        resolve(got);
      };
      const giveUp = (): void => deliver(undefined);
      const timer = setTimeout(giveUp, pollMs);
      gone.addEventListener('abort', giveUp);
      session.deliver = deliver;
      if (gone.aborted) giveUp();
      else this.#onListening(session);
    });
    session.registration.lastSeenMs = Date.now();
    return message;
  }

  send(session: Session, message: RunnerMessage): void {
    if (session.channel) session.channel.send({ sessionId: session.id, message });
    else if (session.deliver) session.deliver(message);
    else session.pending.push(message);
  }

  /** Returns the sessions that wait for a message, the longest wait first. */
  *listening(): Generator<Session> {
    for (const session of this.#byId.values()) if (listening(session)) yield session;
  }

  addChannel(send: (message: ChannelMessage) => void): Channel {
    const channel: Channel = { id: randomUUID(), sessions: new Set(), send };
    this.#channels.set(channel.id, channel);
    return channel;
  }

  /**
   * Removes a channel that was closed. Its runners become silent, as if their machines had stopped.
   */
  removeChannel(channel: Channel): void {
    this.#channels.delete(channel.id);
    for (const session of channel.sessions) this.detach(session);
  }

  /** One runner of a fleet falls silent. */
  detach(session: Session): void {
    session.channel?.sessions.delete(session);
    delete session.channel;
    session.registration.lastSeenMs = Date.now();
  }

  /** Ends all polls (shutdown). */
  stop(): void {
    for (const session of this.#byId.values()) session.deliver?.(undefined);
  }
}

const listening = (session: Session): boolean =>
  session.deliver !== undefined || session.channel !== undefined;
