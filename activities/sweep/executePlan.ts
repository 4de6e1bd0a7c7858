/**
 * Executes the plan of a sweep, several findings at a time. A finding that fails does not stop the
 * others.
 */
import pMap from 'p-map';
import type { SweepMark, SweepSkip, SweepFinding } from '../../core/contract/index.ts';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import type { Finding, SweepPlan } from '../../core/sweep/decideSweep.ts';
import { objectMark } from '../../core/sweep/objectMark.ts';
import type { OwnedObject } from '../../core/sweep/ownedObject.ts';
import {
  repairJobObject,
  repairPod,
  repairRegistration,
  repairResource,
  replaceUnresponsive,
  stopStep,
  terminateStuckRunner,
  wakeRunner,
  type Repaired,
  type RepairTools,
} from './repairs.ts';
import { errorMessage } from '../../core/domain/errorMessage.ts';

/**
 * Findings handled concurrently. Each takes a few requests, and other clients need the servers too.
 */
const AT_ONCE = 5;
/**
 * Maximum repairs per sweep; the next sweep does the rest. Many findings may have a common cause,
 * and the CI server has a rate limit.
 */
const MAX_REPAIRS = 200;

/** Result of a plan: its findings, the marks for the next sweep, and the skipped findings. */
export interface PlanResult {
  readonly items: SweepFinding[];
  readonly marks: SweepMark[];
  readonly skipped: SweepSkip[];
}

type Outcome =
  | { readonly item: SweepFinding; readonly keepsMark: boolean }
  | { readonly skipped: SweepSkip; readonly keepsMark: boolean };

/**
 * Repairs, marks or signals each finding of the plan, and removes marks that no longer apply. A
 * finding that fails is reported as `failed`. At most 200 are repaired; the rest is reported as
 * `deferred`.
 * @throws the abort reason of the signal
 */
export async function executePlan(
  tools: RepairTools,
  { findings, unmark }: SweepPlan,
): Promise<PlanResult> {
  const { sources, owned } = tools;
  let repairs = 0;
  const pods = memoize(async () => await owned.list('pod', sources.signal));
  const items: SweepFinding[] = [];
  const marks: SweepMark[] = [];
  const skipped: SweepSkip[] = [];
  const signal = omitUndefined({ signal: sources.signal });
  await pMap(
    findings,
    async (finding) => {
      sources.progress?.(`${finding.step} ${nameOf(finding)}`);
      const isRepair = finding.step === 'repair' || finding.step === 'terminate';
      const outcome =
        isRepair && ++repairs > MAX_REPAIRS
          ? { skipped: 'deferred' as const, keepsMark: true }
          : await attempt(tools, finding, pods);
      if ('item' in outcome) items.push(outcome.item);
      else skipped.push(outcome.skipped);
      if (outcome.keepsMark && finding.subject !== 'object') marks.push(finding.mark);
    },
    { concurrency: AT_ONCE, ...signal },
  );
  await pMap(unmark, async (object) => await removeMark(tools, object), {
    concurrency: AT_ONCE,
    ...signal,
  });
  return { items, marks, skipped };
}

async function attempt(
  tools: RepairTools,
  finding: Finding,
  pods: () => Promise<readonly OwnedObject[]>,
): Promise<Outcome> {
  try {
    const outcome = await act(tools, finding, pods);
    if (typeof outcome === 'string') return { item: sweptItem(finding, outcome), keepsMark: true };
    if (outcome.kind === 'skipped')
      return { skipped: outcome.why, keepsMark: outcome.why !== 'changed' };
    return { item: sweptItem(finding, 'repaired', outcome.note), keepsMark: false };
  } catch (error) {
    tools.sources.signal?.throwIfAborted();
    tools.sources.logger.warn(
      { err: error, what: nameOf(finding) },
      `sweep: ${finding.step} failed; the next sweep tries again`,
    );
    return {
      item: sweptItem(finding, 'failed', errorMessage(error)),
      keepsMark: true,
    };
  }
}

async function act(
  tools: RepairTools,
  finding: Finding,
  pods: () => Promise<readonly OwnedObject[]>,
): Promise<Repaired | 'marked' | 'waits'> {
  switch (finding.subject) {
    case 'object':
      if (finding.step === 'repair') return await repairObject(tools, finding, pods);
      if (finding.step === 'wait') return 'waits';
      await tools.owned.mark(
        finding.object,
        objectMark(finding.as, finding.reason, tools.owned.now()),
      );
      return 'marked';
    case 'registration':
      if (finding.step === 'repair') return await repairRegistration(tools, finding);
      return finding.step === 'mark' ? 'marked' : 'waits';
    case 'runner':
      if (finding.step === 'repair')
        return finding.as === 'unresponsive_runner'
          ? await replaceUnresponsive(tools, finding, pods)
          : await stopStep(tools, finding, pods);
      if (finding.step === 'terminate') return await terminateStuckRunner(tools, finding, pods);
      if (finding.step === 'signal') await wakeRunner(tools, finding.runner);
      return finding.step === 'mark' ? 'marked' : 'waits';
  }
}

async function repairObject(
  tools: RepairTools,
  finding: Extract<Finding, { subject: 'object' }>,
  pods: () => Promise<readonly OwnedObject[]>,
): Promise<Repaired> {
  if (finding.object.kind === 'pod') return await repairPod(tools, finding);
  return finding.object.runnerPod === undefined
    ? await repairResource(tools, finding, pods)
    : await repairJobObject(tools, finding);
}

async function removeMark({ owned, sources }: RepairTools, object: OwnedObject): Promise<void> {
  try {
    await owned.mark(object, null);
  } catch (error) {
    // A leftover mark is safe: every repair assesses the object again first.
    sources.logger.warn(
      { err: error, name: object.name },
      'sweep: failed to remove an outdated mark; the next sweep retries',
    );
  }
}

/**
 * Returns the entry of a finding in the report of the sweep.
 * @param status - the outcome of the finding
 */
export function sweptItem(
  finding: Finding,
  status: SweepFinding['status'],
  note?: string,
): SweepFinding {
  return {
    kind: finding.as,
    name: nameOf(finding),
    location: locationOf(finding),
    reason: finding.reason,
    status,
    ...omitUndefined({ workflowId: workflowOf(finding), note }),
  };
}

function nameOf(finding: Finding): string {
  switch (finding.subject) {
    case 'object':
      return finding.object.kind === 'pod'
        ? finding.object.name
        : `${finding.object.kind} ${finding.object.name}`;
    case 'registration':
      return finding.registration.name;
    case 'runner':
      return finding.runner.workflowId;
  }
}

function locationOf(finding: Finding): string {
  switch (finding.subject) {
    case 'object':
      return finding.object.namespace;
    case 'registration':
      return `${finding.registration.scope.kind} ${finding.registration.scope.name}`;
    case 'runner':
      return finding.runner.taskQueue;
  }
}

function workflowOf(finding: Finding): string | undefined {
  if (finding.subject === 'runner') return finding.runner.workflowId;
  return finding.subject === 'object' ? finding.object.identity?.workflowId : undefined;
}

function memoize<T>(run: () => Promise<T>): () => Promise<T> {
  let running: Promise<T> | undefined;
  return async () => await (running ??= run());
}
