/** Queries `holdfast why` about waiting jobs, and compares its causes with the active faults. */
import pMap from 'p-map';
import { parseSubject, type Subject } from '../../cli/why/subject.ts';
import { readJob } from '../../cli/why/readJob.ts';
import { CliError } from '../../cli/shared/exit.ts';
import { Session } from '../../cli/shared/session.ts';
import type { WhyAnswer } from '../../core/contract/index.ts';
import { explain } from '../../core/why/explain.ts';
import type { SimulatedJob } from '../simulator/types.ts';
import { faultKindInfo, type ExpectedCause, type FaultKind } from './faultKinds.ts';
import type { Entry } from './timeline.ts';
import type { ChaosEnvironment } from './world.ts';

/** Time after which a queued job is queried (ms). */
const MIN_WAIT_MS = 30_000;
/** Minimum age of a fault at a query (ms). A later one may not have affected the set yet. */
const MIN_FAULT_MS = 15_000;
const AT_ONCE = 4;

/** Statistics of the queries. Only faults that keep jobs waiting count. */
export interface WhyStatistics {
  /** Number of queries during a fault. */
  readonly judged: number;
  /** Number of these whose answer named an active fault. */
  readonly correct: number;
  /** Number of queries without a fault, or with one that was active for only some seconds. */
  readonly notJudged: number;
  /** Number of the other answers, by fault and named causes. */
  readonly incorrect: Readonly<Record<string, number>>;
}

/** Returns the faults that keep jobs waiting and were active during the whole time. Pure. */
export function activeFaults(entries: readonly Entry[], from: number, to: number): FaultKind[] {
  const begun = new Map<FaultKind, number>();
  const active = new Set<FaultKind>();
  for (const entry of entries) {
    if (entry.kind !== 'fault' || entry.at > to) continue;
    if (entry.edge === 'begins') begun.set(entry.fault, entry.at);
    else begun.delete(entry.fault);
  }
  for (const [kind, at] of begun)
    if (at <= from && faultKindInfo(kind).expectedCauses !== undefined) active.add(kind);
  return [...active];
}

/** Queries `holdfast why`, and counts the answers. */
export class Questions {
  readonly #world: ChaosEnvironment;
  readonly #incorrect = new Map<string, number>();
  #judged = 0;
  #correct = 0;
  #notJudged = 0;

  constructor(world: ChaosEnvironment) {
    this.#world = world;
  }

  /** Queries each job of a set that has waited for 30 s. */
  async ask(): Promise<void> {
    const { observer, name } = this.#world;
    const before = Date.now() - MIN_WAIT_MS;
    const sets = [`${name}-e`, `${name}-s`];
    const waiting = observer.openJobs().filter(({ status, created_at: at, labels }) => {
      return status === 'queued' && Date.parse(at) < before && labels.some((label) => sets.includes(label)); // prettier-ignore
    });
    if (waiting.length === 0) return;
    const env = { ...this.#world.foreignSettings, TEMPORAL_NAMESPACE: 'default' };
    await pMap(waiting, async (job) => await this.#askAbout(job, env), { concurrency: AT_ONCE });
  }

  async #askAbout(job: SimulatedJob, env: Readonly<Record<string, string>>): Promise<void> {
    const { observer } = this.#world;
    const from = observer.now() - MIN_FAULT_MS;
    const url = `https://github.com/${job.repo}/actions/runs/${job.run_id}/job/${job.id}`;
    const answer = await answerTo(parseSubject(url, job.labels.join(',')), env);
    // A job that was assigned in the meantime no longer waits.
    if (this.#world.simulator.world.jobs.get(job.id)?.status !== 'queued') return;
    const active = activeFaults(observer.entries, from, observer.now());
    if (active.length === 0) {
      this.#notJudged += 1;
      return;
    }
    this.#judged += 1;
    const expected = new Set<ExpectedCause>(
      active.flatMap((kind) => faultKindInfo(kind).expectedCauses ?? []),
    );
    if (answer.causes.some((cause) => expected.has(cause))) {
      this.#correct += 1;
      return;
    }
    const key = `${active.join(' + ')}: ${answer.state}, ${answer.causes.join(', ') || 'no cause'}${answer.missing.map((text) => `; ${text}`).join('')}`;
    this.#incorrect.set(key, (this.#incorrect.get(key) ?? 0) + 1);
  }

  /** Returns the statistics so far. */
  result(): WhyStatistics {
    return {
      judged: this.#judged,
      correct: this.#correct,
      notJudged: this.#notJudged,
      incorrect: Object.fromEntries(this.#incorrect),
    };
  }
}

interface Answer extends Pick<WhyAnswer, 'missing'> {
  readonly state: string;
  readonly causes: readonly ExpectedCause[];
}

/** Queries as a user does, with a separate connection. */
async function answerTo(subject: Subject, env: Readonly<Record<string, string>>): Promise<Answer> {
  if (subject.kind !== 'job') throw new Error('subject: must be a job');
  try {
    const session = await Session.open({}, env);
    try {
      const answer = explain({ kind: 'job', ...(await readJob(session, env, subject)) });
      return { ...answer, causes: answer.causes.map(({ cause }) => cause) };
    } finally {
      await session.close();
    }
  } catch (error) {
    if (!(error instanceof CliError)) throw error;
    return {
      state: 'failed',
      causes: error.code === 'unreachable' ? ['unreachable'] : [],
      missing: [error.message],
    };
  }
}
