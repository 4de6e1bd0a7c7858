import { CancellationScope, condition, log } from '@temporalio/workflow';
import { groupedJobId, type JobInput, type JobReport, type JobReportStatus } from '../../core/contract/index.ts';
import type { ReportRefusal } from '../../core/calls/index.ts';
import { defined } from '../../core/defined.ts';
import { reportName } from '../../core/domain/changeSet.ts';
import type { ReportSpec } from '../../core/input/jobReport.ts';
import { callUnless, reportCalls, workerCalls } from '../calls.ts';
import type { GroupState } from './groupState.ts';
import { reportWords, reportedState, type ReportWords, type RunEnd } from './reportWords.ts';

/** What is to be told, in full. */
interface Telling extends JobReport, ReportWords {
  readonly job: Pick<JobInput, 'name' | 'repository' | 'credential'>;
}

/** Plain data, for a continue-as-new. */
export interface CarriedReports extends Omit<JobReportStatus, 'pending'> {
  /** What was told last, whatever has become of it. */
  readonly told?: Pick<JobReport, 'generation' | 'state'>;
  readonly pending?: Telling;
}

/**
 * Tells the CI server how the newest version is: one report after the other, each until it is taken, or something newer is to be told. That waits for the end of
 * a try under way, so that no older word is heard after it. What is not taken holds nothing up but itself.
 */
export class Reports {
  readonly #group: string;
  #carried: CarriedReports;
  #admitted: { readonly generation: number; readonly where: ReportSpec | ReportRefusal } | undefined;
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
    const { pending: _older, ...before } = this.#carried;
    this.#carried = { ...before, told: { generation, state } };
    if (job?.repository === undefined || job.report === false) return;
    const { name, repository, credential } = job;
    this.#carried = { ...this.#carried, pending: { generation, commit, state, at: new Date().toISOString(), ...reportWords(state, end), job: { name, repository, ...defined({ credential }) } } };
  }

  /** Absent where nothing is reported. */
  status(): JobReportStatus | undefined {
    const { last, pending, heldBack } = this.#carried;
    const status = defined({ last, pending: pending && plain(pending), heldBack });
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
        await condition(() => this.#stopped || this.#carried.pending !== undefined);
        const { pending } = this.#carried;
        if (this.#stopped) return;
        if (pending !== undefined) await this.#report(pending);
      }
    });
  }

  async #report(telling: Telling): Promise<void> {
    const where = await this.#admit(telling);
    const isOld = (): boolean => this.#stopped || this.#carried.pending !== telling;
    if (isOld()) return;
    if ('refused' in where) return this.#close(`not reported: ${where.refused}`);
    const { credential, scope, name } = where;
    const { generation, commit, state, at, description, details, cause } = telling;
    const context = reportName(this.#group, name);
    const report = { credential, scope, commit, context, run: groupedJobId(this.#group, generation), state, at, description, details, ...defined({ cause }) };
    const called = await callUnless(isOld, async () => await reportCalls(credential, scope, `report: ${state}`).reportStatus(report));
    if (called.kind === 'done') this.#carried = { ...this.#carried, last: plain(telling) };
    if (isOld() || called.kind === 'interrupted') return;
    this.#close(called.kind === 'done' ? called.value.withheld : `${state}: ${called.message}`);
  }

  /** Whether it can be reported is asked once for each version. */
  async #admit({ generation, commit, job }: Telling): Promise<ReportSpec | ReportRefusal> {
    if (this.#admitted?.generation !== generation) {
      this.#admitted = { generation, where: await workerCalls('where is it reported?').admitReport({ job, commit }) };
    }
    return this.#admitted.where;
  }

  /** Nothing is left to be told. @param heldBack - why it was not taken, or not all of it: said once */
  #close(heldBack: string | undefined): void {
    const { pending: _told, heldBack: before, ...rest } = this.#carried;
    this.#carried = { ...rest, ...defined({ heldBack }) };
    if (heldBack !== undefined && heldBack !== before) log.warn('A report to the CI server was held back', { group: this.#group, why: heldBack });
  }
}

const plain = ({ generation, commit, state, at }: Telling): JobReport => ({ generation, commit, state, at });
