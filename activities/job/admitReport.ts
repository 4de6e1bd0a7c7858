import type { AdmitReportInput, ReportRefusal } from '../../core/activities/index.ts';
import { isFullCommitId } from '../../core/domain/commitReport.ts';
import { parseJobReport, type ReportSpec } from '../../core/input/jobReport.ts';
import { credentialFault } from '../runner/admit.ts';
import type { ActivityPorts } from '../ports.ts';

/** A refusal is an answer: what cannot be reported is run all the same. */
export function admitReport(
  { ciServers }: ActivityPorts,
  { job, commit }: AdmitReportInput,
): ReportSpec | ReportRefusal {
  const parsed = parseJobReport(job);
  if (!parsed.ok)
    return { refused: parsed.errors.map(({ field, message }) => `${field} ${message}`).join('; ') };
  if (!isFullCommitId(commit))
    return {
      refused: `${commit} is an abbreviation: a CI server takes the commit's whole id (git rev-parse HEAD)`,
    };
  const fault = credentialFault(ciServers, parsed.spec);
  return fault === undefined
    ? parsed.spec
    : { refused: `${fault}; "credential" of the job names another, "report: false" asks for none` };
}
