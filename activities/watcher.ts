/**
 * The watcher: completes the waits that gave their slot back, when the world moves. Stateless (any watcher can complete any worker's
 * wait, "not found" means that nobody waits), so several may run; and never the only source, because every wait looks live again.
 */
import { gonePod } from './pods.ts';
import { POD_CONDITIONS, dueAtMs, isBusy, isMet, isSpent, parseWaitActivityId, waitActivityId } from '../core/domain/podConditions.ts';
import type { Compute, Logger, PodListener, WaitCompleter } from './ports.ts';
import type { ShortWaits } from './heldBackAnswers.ts';
import { TaskQueue } from './taskQueue.ts';
import type { PodView } from '../core/domain/pod.ts';

export interface WatcherOptions {
  readonly compute: Compute;
  readonly completer: WaitCompleter;
  readonly logger: Logger;
  /** Activities of this process that hold their answer back. */
  readonly shortWaits?: ShortWaits;
  /** Completions under way at once. @default 64 */
  readonly concurrency?: number;
  /** When to offer an answer again for which nobody waited, in ms after one another. @default 5 s, 30 s */
  readonly againMs?: readonly number[];
  /** Told of every completion, for metrics. */
  readonly onCompletion?: (completed: boolean) => void;
}

export interface Watcher {
  stop(): Promise<void>;
  /** The shared watch is up to date. */
  synced(): boolean;
  /** Resolves when all that was seen so far has been handed on. */
  idle(): Promise<void>;
}

/** A pod that has been online for longer than this is not announced again by a new watcher: its wait has looked live itself since. */
const ANNOUNCE_ONLINE_MS = 15 * 60_000;

/**
 * An answer that came before its wait is offered again: mostly the wait's own look has found it by then, but a look that was lost on its
 * way to the worker (a server that is short of breath, a worker that died with it in its hands) would come again only at the re-sync.
 */
const AGAIN_MS = [5_000, 30_000] as const;

/** Starts the one watcher of this process. */
export async function startWatcher(options: WatcherOptions): Promise<Watcher> {
  const { compute, completer, logger, shortWaits } = options;
  const queue = new TaskQueue(options.concurrency ?? 64, (error, what) => logger.warn({ err: error }, `${what} failed; the wait's own re-sync makes up for it`));
  const timers = new Map<string, NodeJS.Timeout>();
  /** Announcements of states that wait for each other, by pod. */
  const lines = new Map<string, { last: Promise<void>; told: number }>();
  let announced = 0;
  const unclaimed = new Set<NodeJS.Timeout>();
  const againMs = options.againMs ?? AGAIN_MS;

  const complete = (pod: PodView, activityId: string, again: readonly number[] = againMs): void => {
    void queue.add(`completion of ${activityId}`, async () => {
      const completed = await completer.complete(pod.workflowId, activityId, pod);
      options.onCompletion?.(completed);
      if (completed && isSpent(pod)) return await deleteAhead(pod);
      const [afterMs, ...rest] = again;
      if (completed || afterMs === undefined) return;
      const timer = setTimeout(() => {
        unclaimed.delete(timer);
        complete(pod, activityId, rest);
      }, afterMs);
      unclaimed.add(timer);
    });
  };

  /** Its workflow would ask for it next; it finds the pod gone, or going. */
  async function deleteAhead(pod: PodView): Promise<void> {
    try {
      await compute.deletePod(pod, { reason: 'its job is done, and its workflow knows' });
    } catch (error) {
      logger.warn({ err: error, pod: pod.name }, "could not delete a pod whose job is done ahead of its workflow's tear-down");
    }
  }

  shortWaits?.open(({ taskToken, podName, result }) => {
    void queue.add(`answer that waited for ${podName}`, async () => {
      if (!(await completer.answer(taskToken, result))) logger.warn({ pod: podName }, 'nobody waited for an answer that was held back: its activity had timed out, and is tried again');
    });
  });

  const listener: PodListener = {
    changed(pod, previous) {
      const nowMs = Date.now();
      for (const condition of POD_CONDITIONS) {
        if (shortWaits?.changed(pod, condition) === true || !isMet(condition, pod, nowMs)) continue;
        if (previous !== undefined ? isMet(condition, previous, nowMs) && pod.uid === previous.uid : isOldNews(condition, pod, nowMs)) continue;
        complete(pod, waitActivityId(condition, pod.name));
      }
      lookAgainWhenDue(pod, nowMs);
      announceState(pod, previous, nowMs);
    },
    relisted(pods) {
      void queue.add('search for waits whose pod vanished', async () => await completeVanished(pods));
    },
  };

  function announceState(pod: PodView, previous: PodView | undefined, nowMs: number, firstSight = previous === undefined): void {
    const busy = isBusy(pod, nowMs);
    if (busy === undefined || pod.online !== true || pod.ended || (busy === previous?.busy && previous.online === true)) return;
    // A runner is idle when it comes online: its wait says so. Idle is news only after busy, which may have been before this watcher was.
    const wasBusy = previous?.online === true && isBusy(previous, nowMs) === true;
    if (!busy && !wasBusy && !(firstSight && pod.reusable === true)) return;
    const state = { uid: pod.uid, state: busy ? ('busy' as const) : ('idle' as const) };
    const place = ++announced;
    void queue.add(`podState of ${pod.name}`, async () => await tellState(pod, state, place));
  }

  /** One after the other for each pod: told side by side, busy may overtake the idle that follows it; nor may it when it is told again. */
  async function tellState({ name, workflowId }: PodView, state: Parameters<WaitCompleter['signalPodState']>[1], place: number): Promise<void> {
    const line = lines.get(name) ?? { last: Promise.resolve(), told: 0 };
    lines.set(name, line);
    const turn = line.last.then(async () => {
      if (line.told < place) await completer.signalPodState(workflowId, state);
      line.told = Math.max(line.told, place);
    });
    const over = turn.catch(() => undefined);
    line.last = over;
    await turn;
    if (line.last === over) lines.delete(name);
  }

  /** What time alone brings: an image problem that persists, a termination that is overdue, a new runner that stays not ready. */
  function lookAgainWhenDue(pod: PodView, nowMs: number): void {
    clearTimeout(timers.get(pod.name));
    timers.delete(pod.name);
    const busyFrom = Date.parse(pod.busyFrom ?? '');
    const dues = [busyFrom, ...POD_CONDITIONS.map((condition) => dueAtMs(condition, pod) ?? 0)].filter((at) => at > nowMs);
    if (dues.length === 0) return;
    const timer = setTimeout(() => {
      timers.delete(pod.name);
      for (const condition of POD_CONDITIONS) if (isMet(condition, pod, Date.now()) && !isMet(condition, pod, nowMs)) complete(pod, waitActivityId(condition, pod.name));
      announceState(pod, undefined, Date.now(), false);
    }, Math.min(...dues) - nowMs + 1);
    timers.set(pod.name, timer);
  }

  /**
   * What vanished while nobody watched left no event: the waits that are pending without a pod are held against a list taken after them,
   * because a pod may have been made since the watch's own.
   */
  async function completeVanished(pods: ReadonlyMap<string, PodView>): Promise<void> {
    const present = new Set([...pods.values()].map((pod) => pod.workflowId));
    const pending: { workflowId: string; activityId: string }[] = [];
    for await (const wait of completer.pendingWaits(present)) pending.push(wait);
    if (pending.length === 0) return;
    const now = new Map((await compute.list()).map((pod) => [pod.name, pod]));
    for (const { workflowId, activityId } of pending) {
      const wait = parseWaitActivityId(activityId);
      if (wait === undefined) continue;
      const pod = now.get(wait.podName) ?? gonePod({ name: wait.podName, uid: '' }, workflowId);
      if (isMet(wait.condition, pod, Date.now())) complete(pod, activityId);
    }
  }

  const watch = await compute.watch(listener);
  return {
    synced: () => watch.synced(),
    idle: async () => await queue.idle(),
    async stop() {
      await watch.stop();
      shortWaits?.close();
      for (const timer of [...timers.values(), ...unclaimed]) clearTimeout(timer);
      await queue.stop();
    },
  };
}

function isOldNews(condition: string, pod: PodView, nowMs: number): boolean {
  return condition === 'online' && !pod.ended && pod.startedAt !== undefined && nowMs - Date.parse(pod.startedAt) > ANNOUNCE_ONLINE_MS;
}
