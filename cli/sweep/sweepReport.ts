/** Formats the report of a sweep for people, and determines the exit status. */
import { FINDING_KINDS, type SweepReport } from '../../core/contract/index.ts';
import { incompleteMessage, sweepOutcome, sweepSummary } from '../../core/domain/sweepSummary.ts';
import { CliError, EXIT } from '../shared/exit.ts';
import type { Output } from '../shared/output.ts';
import { table } from '../shared/table.ts';

/**
 * Prints the report.
 * @returns the exit status
 */
export function printSweep(output: Output, report: SweepReport): number {
  output.result(report, sweepLines(report));
  const problem = sweepProblem(report);
  return problem === undefined ? EXIT.ok : output.error(new CliError('failed', problem));
}

/** Returns why the sweep counts as failed, or `undefined` if it succeeded. */
function sweepProblem(report: SweepReport): string | undefined {
  const { incompleteLists, aborted, counts } = report;
  if (incompleteLists.length > 0) return incompleteMessage(incompleteLists);
  const outcome = sweepOutcome(report);
  if (outcome === 'aborted') return `nothing was changed: ${aborted ?? ''} (--force continues)`;
  if (outcome !== 'failed') return undefined;
  return `${FINDING_KINDS.reduce((sum, kind) => sum + counts[kind].failed, 0)} could not be repaired; the next sweep tries again`;
}

/** Formats a sweep report as text. */
export function sweepLines(report: SweepReport): string[] {
  const { location, counts, skipped, findings, omittedFindings, skippedLists } = report;
  const found = FINDING_KINDS.filter((kind) => counts[kind].found > 0);
  const lines = [`${location}: ${sweepSummary(report)}`];
  if (found.length > 0)
    lines.push(
      '',
      table(
        ['FOUND', 'KIND', 'MARKED', 'REPAIRED', 'FAILED'],
        found.map((kind) => [
          String(counts[kind].found),
          kind,
          ...[counts[kind].marked, counts[kind].repaired, counts[kind].failed].map(String),
        ]),
      ),
    );
  if (findings.length > 0)
    lines.push(
      '',
      table(
        ['DONE', 'KIND', 'WHAT', 'WHERE', 'WHY'],
        findings.map(({ status, kind, name, location, reason, note }) => [
          status,
          kind,
          name,
          location,
          note === undefined ? reason : `${reason}; ${note}`,
        ]),
      ),
    );
  if (omittedFindings > 0) lines.push(`and ${omittedFindings} more`);
  const remaining = Object.entries(skipped).toSorted(([, a], [, b]) => b - a);
  if (remaining.length > 0)
    lines.push(
      '',
      table(
        ['LEFT ALONE', 'WHY'],
        remaining.map(([reason, count]) => [String(count), reason]),
      ),
    );
  for (const { namespaceId, objects } of report.otherTemporal ?? [])
    lines.push(
      '',
      `${objects} objects belong to workflows in another Temporal namespace (ID ${namespaceId}) and were skipped.`,
      `If that namespace no longer exists: holdfast sweep --take-over ${namespaceId}`,
    );
  if (skippedLists.length > 0)
    lines.push('', ...skippedLists.map(({ list, reason }) => `Not checked: ${list} (${reason})`));
  return lines;
}
