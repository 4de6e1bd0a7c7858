/** Asks `holdfast why` about jobs that wait, and compares its answers with the faults that are on. */
import pMap from 'p-map';
import { parseSubject, type Subject } from '../../cli/why/subject.ts';
import { readJob } from '../../cli/why/readJob.ts';
import { CliError } from '../../cli/shared/exit.ts';
import { Session } from '../../cli/shared/session.ts';
import type { WhyAnswer } from '../../core/contract/index.ts';
import { explain } from '../../core/why/explain.ts';
import type { SimulatedJob } from '../simulator/types.ts';
import { faultKindInfo, type FaultKind, type Named } from './faultKinds.ts';
import type { Entry } from './timeline.ts';
import type { ChaosEnvironment } from './world.ts';

/** A job that has waited for so long is asked about. */
const WAITS_MS = 30_000;
/** A fault that began later may not have met the job's set yet. */
const MET_MS = 15_000;
const AT_ONCE = 4;

/** What was asked while a fault was on that keeps jobs waiting. */
export interface AskedWhy {
  /** Questions, and those of them whose answer named a fault that was on. */
  readonly asked: number;
  readonly named: number;
  /** Questions while no such fault was on, or it was on for seconds. They are not judged. */
  readonly calm: number;
  /** The other answers, by fault and what they named: how often. */
  readonly others: Readonly<Record<string, number>>;
}

/** Faults that keep jobs waiting, and were on during all of this time. Pure. */
export function faultsOn(entries: readonly Entry[], from: number, to: number): FaultKind[] {
  const begun = new Map<FaultKind, number>();
  const on = new Set<FaultKind>();
  for (const entry of entries) {
    if (entry.kind !== 'fault' || entry.at > to) continue;
    if (entry.edge === 'begins') begun.set(entry.fault, entry.at);
    else begun.delete(entry.fault);
  }
  for (const [kind, at] of begun)
    if (at <= from && faultKindInfo(kind).named !== undefined) on.add(kind);
  return [...on];
}

/** Asks, and counts the answers. */
export class Questions {
  readonly #world: ChaosEnvironment;
  readonly #others = new Map<string, number>();
  #asked = 0;
  #named = 0;
  #calm = 0;

  constructor(world: ChaosEnvironment) {
    this.#world = world;
  }

  /** Asks about each job of a set that has waited for 30 s. */
  async ask(): Promise<void> {
    const { observer, name } = this.#world;
    const before = Date.now() - WAITS_MS;
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
    const from = observer.now() - MET_MS;
    const url = `https://github.com/${job.repo}/actions/runs/${job.run_id}/job/${job.id}`;
    const answer = await answerTo(parseSubject(url, job.labels.join(',')), env);
    // A job that was assigned meanwhile does not wait any more.
    if (this.#world.simulator.world.jobs.get(job.id)?.status !== 'queued') return;
    const on = faultsOn(observer.entries, from, observer.now());
    if (on.length === 0) {
      this.#calm += 1;
      return;
    }
    this.#asked += 1;
    const wanted = new Set<Named>(on.flatMap((kind) => faultKindInfo(kind).named ?? []));
    if (answer.causes.some((cause) => wanted.has(cause))) {
      this.#named += 1;
      return;
    }
    const key = `${on.join(' + ')}: ${answer.state}, ${answer.causes.join(', ') || 'no cause'}${answer.missing.map((text) => `; ${text}`).join('')}`;
    this.#others.set(key, (this.#others.get(key) ?? 0) + 1);
  }

  result(): AskedWhy {
    return {
      asked: this.#asked,
      named: this.#named,
      calm: this.#calm,
      others: Object.fromEntries(this.#others),
    };
  }
}

interface Answer extends Pick<WhyAnswer, 'missing'> {
  readonly state: string;
  readonly causes: readonly Named[];
}

/** As a user asks: with a connection of its own. */
async function answerTo(subject: Subject, env: Readonly<Record<string, string>>): Promise<Answer> {
  if (subject.kind !== 'job') throw new Error('a job is asked about');
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
