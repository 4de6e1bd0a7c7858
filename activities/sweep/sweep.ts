/**
 * The sweep compares workflows, pods and registrations, and marks or repairs what does not match.
 */
import {
  FINDING_KINDS,
  type SweepCounts,
  type SweepFinding,
  type SweepMark,
  type SweepReport,
  type SweepSkip,
} from '../../core/contract/index.ts';
import { formatServedLocation } from '../../core/domain/location.ts';
import type { SweepSpec } from '../../core/input/sweep.ts';
import { decideSweep, type SweepPlan } from '../../core/sweep/decideSweep.ts';
import { ComputeError } from '../ports/computeError.ts';
import { executePlan, sweptItem } from './executePlan.ts';
import { collectInventory } from './inventory.ts';
import type { SweepSources } from './sweepSources.ts';
import { RunnerWorkflows } from './runnerWorkflows.ts';
import { errorMessage } from '../../core/domain/errorMessage.ts';

export type { SweepSources } from './sweepSources.ts';

/** Limits of the report. It is the result of a workflow, so its size must be bounded. */
const MAX_ITEMS = 200;
const MAX_MARKS = 500;
const MAX_INCOMPLETE = 50;
/** Order of the findings in a report. */
const ORDER: readonly SweepFinding['status'][] = ['failed', 'repaired', 'found', 'waits', 'marked'];

/**
 * Runs one sweep. Nothing is changed if a list is incomplete. Incomplete lists and failed repairs
 * are in the report.
 * @param spec - from `parseSweepInput` of core/input/sweep.ts
 * @param marks - the marks of the last report, see {@link SweepReport.marks}
 * @throws ComputeError `invalid` if this compute has no sweep
 * @throws the abort reason of the signal
 */
export async function sweep(
  sources: SweepSources,
  spec: SweepSpec,
  marks: readonly SweepMark[],
): Promise<SweepReport> {
  const { compute, client, signal } = sources;
  const { ownedObjects } = compute;
  if (ownedObjects === undefined)
    throw new ComputeError(
      'invalid',
      `There is nothing to sweep on the compute "${compute.kind}": set HOLDFAST_COMPUTE=kubernetes, or see to its runners by hand`,
    );
  const startedMs = Date.now();
  const report = emptyReport(spec, marks, startedMs);
  const finish = (): SweepReport => ({
    ...report,
    tookMs: Date.now() - startedMs,
    incompleteLists: report.incompleteLists.slice(0, MAX_INCOMPLETE),
    marks: report.marks.slice(0, MAX_MARKS),
  });
  let served;
  try {
    served = await compute.location();
  } catch (error) {
    signal?.throwIfAborted();
    report.incompleteLists.push({ list: 'pods', reason: errorMessage(error) });
    return finish();
  }
  report.location = formatServedLocation(served);
  const workflows = new RunnerWorkflows(client, served);
  const { findings, notVisible, foreign, ...seen } = await collectInventory(
    sources,
    spec,
    served,
    ownedObjects,
    workflows,
  );
  Object.assign(report, seen);
  if (findings === undefined) return finish();
  const plan = decideSweep(findings, marks, ownedObjects.now(), spec);
  Object.assign(report.skipped, plan.skipped);
  countSkipped(report, 'foreign', foreign);
  for (const { objects } of seen.otherTemporal ?? [])
    countSkipped(report, 'other_temporal', objects);
  countSkipped(report, 'scope_not_visible', notVisible);
  await applyPlan(report, plan, { sources, spec, owned: ownedObjects, workflows });
  logReport(sources, report);
  return finish();
}

/** Executes the plan, if it may be executed, and reports its findings. */
async function applyPlan(
  report: SweepReport,
  plan: SweepPlan,
  execution: Parameters<typeof executePlan>[0],
): Promise<void> {
  if (plan.abortReason !== undefined) report.aborted = plan.abortReason;
  if (execution.spec.dryRun || plan.abortReason !== undefined)
    return addFindings(
      report,
      plan.findings.map((finding) => sweptItem(finding, 'found')),
    );
  const done = await executePlan(execution, plan);
  report.marks = done.marks;
  for (const reason of done.skipped) countSkipped(report, reason);
  addFindings(report, done.items);
}

function emptyReport(spec: SweepSpec, marks: readonly SweepMark[], startedMs: number): SweepReport {
  const none = (): SweepCounts => ({ found: 0, marked: 0, repaired: 0, failed: 0 });
  return {
    location: '',
    at: new Date(startedMs).toISOString(),
    tookMs: 0,
    dryRun: spec.dryRun,
    examined: {},
    incompleteLists: [],
    skippedLists: [],
    counts: Object.fromEntries(
      FINDING_KINDS.map((kind) => [kind, none()]),
    ) as SweepReport['counts'],
    skipped: {},
    findings: [],
    omittedFindings: 0,
    marks: [...marks],
  };
}

function countSkipped({ skipped }: SweepReport, reason: SweepSkip, times = 1): void {
  if (times > 0) skipped[reason] = (skipped[reason] ?? 0) + times;
}

function addFindings(report: SweepReport, items: readonly SweepFinding[]): void {
  for (const { kind, status } of items) {
    report.counts[kind].found += 1;
    if (status === 'marked' || status === 'repaired' || status === 'failed')
      report.counts[kind][status] += 1;
  }
  report.findings = items
    .toSorted((one, other) => ORDER.indexOf(one.status) - ORDER.indexOf(other.status))
    .slice(0, MAX_ITEMS);
  report.omittedFindings = items.length - report.findings.length;
}

function logReport(
  { logger }: SweepSources,
  { location: place, examined, skipped, aborted, findings, omittedFindings }: SweepReport,
): void {
  const items = findings.length + omittedFindings;
  logger.info({ place, examined, skipped, aborted, items }, 'swept');
}
