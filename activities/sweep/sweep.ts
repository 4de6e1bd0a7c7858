/** The sweep: looks at workflows, pods and registrations, compares them, and marks or repairs what disagrees. */
import {
  FINDING_KINDS,
  type SweepCounts,
  type SweepMark,
  type SweepReport,
  type SweepSkip,
  type SweepFinding,
  type SweptKind,
} from '../../core/contract/index.ts';
import { formatLocation } from '../../core/domain/location.ts';
import type { SweepSpec } from '../../core/input/sweep.ts';
import { decideSweep } from '../../core/sweep/decideSweep.ts';
import { ComputeError } from '../ports.ts';
import { executePlan, sweptItem } from './executePlan.ts';
import { collectInventory } from './inventory.ts';
import type { SweepSources } from './sweepSources.ts';
import { RunnerWorkflows } from './runnerWorkflows.ts';

export type { SweepSources } from './sweepSources.ts';

/** A report is a workflow's result: it must not grow with what went wrong. */
const MAX_ITEMS = 200;
const MAX_MARKS = 500;
const MAX_INCOMPLETE = 50;
/** What comes first in a report. */
const ORDER: readonly SweepFinding['done'][] = ['failed', 'repaired', 'found', 'waits', 'marked'];

/**
 * One sweep. A list that cannot be had is in the report, and nothing is touched then; so is an item that failed.
 * @param spec - from `parseSweepInput` of core/input/sweep.ts
 * @param marks - of the last report; {@link SweepReport.marks}
 * @throws ComputeError `invalid` where there is nothing to sweep on this compute; the signal's reason
 */
export async function sweep(
  sources: SweepSources,
  spec: SweepSpec,
  marks: readonly SweepMark[],
): Promise<SweepReport> {
  const { compute, client, signal } = sources;
  const { owned } = compute;
  if (owned === undefined)
    throw new ComputeError(
      'invalid',
      `There is nothing to sweep on the compute "${compute.kind}": set HOLDFAST_COMPUTE=kubernetes, or see to its runners by hand`,
    );
  const startedMs = Date.now();
  const report: SweepReport = {
    place: '', at: new Date(startedMs).toISOString(), tookMs: 0, dryRun: spec.dryRun, examined: {}, incomplete: [], unseen: [],
    counts: Object.fromEntries(FINDING_KINDS.map((kind): [SweptKind, SweepCounts] => [kind, { found: 0, marked: 0, repaired: 0, failed: 0 }])) as SweepReport['counts'],
    skipped: {}, items: [], omittedFindings: 0, marks: [...marks],
  }; // prettier-ignore
  const finish = (): SweepReport => ({
    ...report,
    tookMs: Date.now() - startedMs,
    incomplete: report.incomplete.slice(0, MAX_INCOMPLETE),
    marks: report.marks.slice(0, MAX_MARKS),
  });
  const skip = (why: SweepSkip, times = 1): void => {
    if (times > 0) report.skipped[why] = (report.skipped[why] ?? 0) + times;
  };

  let served;
  try {
    served = await compute.place();
  } catch (error) {
    signal?.throwIfAborted();
    report.incomplete.push({
      list: 'pods',
      why: error instanceof Error ? error.message : String(error),
    });
    return finish();
  }
  report.place = formatLocation(served);
  const lives = new RunnerWorkflows(client, served);
  const { findings, notVisible, ...seen } = await collectInventory(
    sources,
    spec,
    served,
    owned,
    lives,
    startedMs,
  );
  Object.assign(report, seen);
  if (findings === undefined) return finish();
  const plan = decideSweep(findings, marks, startedMs, spec);
  Object.assign(report.skipped, plan.skipped);
  skip('scope_not_visible', notVisible);
  if (plan.stopped !== undefined) report.stopped = plan.stopped;
  let items: SweepFinding[];
  if (spec.dryRun || plan.stopped !== undefined) {
    items = plan.findings.map((finding) => sweptItem(finding, 'found'));
  } else {
    const done = await executePlan({ sources, spec, owned, lives }, plan);
    ({ items } = done);
    report.marks = done.marks;
    for (const why of done.skipped) skip(why);
  }
  for (const { kind, done } of items) {
    report.counts[kind].found += 1;
    if (done === 'marked' || done === 'repaired' || done === 'failed')
      report.counts[kind][done] += 1;
  }
  items.sort((one, other) => ORDER.indexOf(one.done) - ORDER.indexOf(other.done));
  report.items = items.slice(0, MAX_ITEMS);
  report.omittedFindings = items.length - report.items.length;
  sources.logger.info(
    {
      place: report.place,
      examined: report.examined,
      skipped: report.skipped,
      stopped: report.stopped,
      items: items.length,
    },
    'swept',
  );
  return finish();
}
