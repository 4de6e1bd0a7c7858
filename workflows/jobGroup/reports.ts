import { CancellationScope, condition, log } from '@temporalio/workflow';
import {
  groupedJobId,
  type JobInput,
  type JobReport,
  type JobReportStatus,
} from '../../core/contract/index.ts';
import type { ReportRefusal } from '../../core/activities/index.ts';
import { defined } from '../../core/domain/omitUndefined.ts';
import { reportName } from '../../core/domain/changeSet.ts';
import type { ReportSpec } from '../../core/input/jobReport.ts';
import { callUnless, reportCalls, workerCalls } from '../shared/activityProxies.ts';
import type { GroupState } from './groupState.ts';
import {
  reportWords,
  reportedState,
  supersededWords,
  type ReportWords,
  type RunEnd,
} from './reportWords.ts';

/** What is to be told, in full. */
interface Telling extends JobReport, ReportWords {
  readonly job: Pick<JobInput, 'name' | 'repository' | 'credential'>;
}

/** Plain data, for a continue-as-new. */
export interface CarriedReports extends Omit<JobReportStatus, 'pending'> {
  /** What was told last, whatever has become of it. */
  readonly told?: Pick<JobReport, 'generation' | 'state'>;
  readonly pending?: Telling;
  /** Of the newest, the last that was begun to be sent: its commit may show it. */
  readonly sent?: Telling;
  /** Last words on commits that are the newest no more, the oldest first. */
  readonly lastWords?: readonly Telling[];
}

/** While the CI server is away: older commits have to do without. */
const MOST_LAST_WORDS = 20;

/**
 * Tells the CI server how the newest version is: one report after the other, each until it is taken, or something newer is to be told. That waits for the end of
 * a try under way, so that no older word is heard after it. What is not taken holds nothing up but itself. When there is nothing to tell of the newest, the
 * commits before it have their last word: none is left to be shown as running for ever.
 */
export class Reports {
  readonly #group: string;
  #carried: CarriedReports;
  #admitted:
    { readonly generation: number; readonly where: ReportSpec | ReportRefusal } | undefined;
  #stopped = false;
  #running: Promise<void>;

  constructor(group: string, carried: CarriedReports) {
    this.#group = group;
    this.#carried = carried;
    this.#running = this.#run();
  }

  /** @param job - of the newest version @param end - of its run, if that is over */
  tell(group: GroupState, job: JobInput | undefined, end: RunEnd | undefined): void {
    const { generation, commit = '' } = group;
    const state = reportedState(group);
    const { told } = this.#carried;
    if (state === undefined || (told?.generation === generation && told.state === state)) return;
    const { pending: _older, ...before } =
      told?.generation === generation ? this.#carried : this.#takeLeave(commit);
    this.#carried = { ...before, told: { generation, state } };
    if (job?.repository === undefined || job.report === false) return;
    const { name, repository, credential } = job;
    this.#carried = {
      ...this.#carried,
      pending: {
        generation,
        commit,
        state,
        at: new Date().toISOString(),
        ...reportWords(state, end),
        job: { name, repository, ...defined({ credential }) },
      },
    };
  }

  /** Absent where nothing is reported. */
  status(): JobReportStatus | undefined {
    const { last, heldBack } = this.#carried;
    const next = this.#next();
    const status = defined({ last, pending: next && plain(next), heldBack });
    return Object.keys(status).length === 0 ? undefined : status;
  }

  /** Leaves off, with the try under way awaited. */
  async stop(): Promise<CarriedReports> {
    this.#stopped = true;
    await this.#running;
    return this.#carried;
  }

  resume(): void {
    this.#stopped = false;
    this.#running = this.#run();
  }

  async #run(): Promise<void> {
    // A group that is cancelled ends, and its reports with it: nobody is there to hear of that.
    await CancellationScope.nonCancellable(async () => {
      for (;;) {
        await condition(() => this.#stopped || this.#next() !== undefined);
        const next = this.#next();
        if (this.#stopped) return;
        if (next !== undefined) await this.#report(next);
      }
    });
  }

  /** The newest comes first: others may wait for it. */
  #next(): Telling | undefined {
    return this.#carried.pending ?? this.#carried.lastWords?.[0];
  }

  /** A version of another commit has come, or another run of the same one, which has its own words. @param commit - of the newest */
  #takeLeave(commit: string): CarriedReports {
    const { sent, lastWords = [], ...rest } = this.#carried;
    const words = lastWord(rest.pending, sent, commit);
    const others = [...lastWords, ...(words === undefined ? [] : [words])].filter(
      (each) => each.commit !== commit,
    );
    return { ...rest, lastWords: others.slice(-MOST_LAST_WORDS) };
  }

  async #report(telling: Telling): Promise<void> {
    const where = await this.#admit(telling);
    const isOld = (): boolean => this.#stopped || this.#next() !== telling;
    if (isOld()) return;
    if ('refused' in where) return this.#close(telling, `not reported: ${where.refused}`);
    const isNewest = this.#carried.pending === telling;
    if (isNewest) this.#carried = { ...this.#carried, sent: telling };
    const { credential, scope, name } = where;
    const { generation, commit, state, at, description, details, cause } = telling;
    const context = reportName(this.#group, name);
    const report = {
      credential,
      scope,
      commit,
      context,
      run: groupedJobId(this.#group, generation),
      state,
      at,
      description,
      details,
      ...defined({ cause }),
    };
    const called = await callUnless(
      isOld,
      async () => await reportCalls(credential, scope, `report: ${state}`).reportStatus(report),
    );
    if (called.kind === 'done' && isNewest)
      this.#carried = { ...this.#carried, last: plain(telling) };
    if (called.kind === 'interrupted' || (called.kind === 'failed' && isOld())) return;
    this.#close(
      telling,
      called.kind === 'done' ? called.value.withheld : `${state}: ${called.message}`,
    );
  }

  /** Whether it can be reported is asked once for each version. */
  async #admit({ generation, commit, job }: Telling): Promise<ReportSpec | ReportRefusal> {
    if (this.#admitted?.generation !== generation) {
      this.#admitted = {
        generation,
        where: await workerCalls('where is it reported?').admitReport({ job, commit }),
      };
    }
    return this.#admitted.where;
  }

  /** It is not told again. @param heldBack - why it was not taken, or not all of it: said once */
  #close(telling: Telling, heldBack: string | undefined): void {
    const { pending, lastWords = [], heldBack: before, ...rest } = this.#carried;
    // What is said of the newest is not unsaid by older ones.
    const kept = pending === telling ? { heldBack } : { pending, heldBack: heldBack ?? before };
    this.#carried = {
      ...rest,
      ...defined(kept),
      lastWords: lastWords.filter((each) => each !== telling),
    };
    if (heldBack !== undefined && heldBack !== before)
      log.warn('A report to the CI server was held back', { group: this.#group, why: heldBack });
  }
}

/** What the commit shall show for good: what its run came to, where that is still to be told; else, where it may be shown as waiting or running, that another has taken its place. */
function lastWord(
  pending: Telling | undefined,
  sent: Telling | undefined,
  newest: string,
): Telling | undefined {
  if (pending !== undefined && isOver(pending)) return pending;
  if (sent === undefined || isOver(sent)) return undefined;
  return { ...sent, state: 'aborted', at: new Date().toISOString(), ...supersededWords(newest) };
}

const isOver = ({ state }: Telling): boolean => state !== 'queued' && state !== 'running';

const plain = ({ generation, commit, state, at }: Telling): JobReport => ({
  generation,
  commit,
  state,
  at,
});
