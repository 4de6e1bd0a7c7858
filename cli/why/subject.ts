/** Parses the subject of `holdfast why`. Pure. */
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import { CliError } from '../shared/exit.ts';

/** Subject of `holdfast why`. `named`: a set or runner. */
export type Subject =
  | {
      readonly kind: 'job';
      readonly jobId: string;
      /** Repository as `owner/repo`. */
      readonly repository?: string;
      /** Labels of the job, as given by the user. */
      readonly labels?: readonly string[];
    }
  | { readonly kind: 'run'; readonly runId: string; readonly repository: string }
  | { readonly kind: 'named'; readonly name: string };

/**
 * Matches `/owner/repo/actions/runs/1/attempts/2/job/3`, as in the address bar and in `html_url` of
 * the API. Gitea uses `/jobs/3`, also with the ID of the job (from 1.26).
 */
const RUN_PATH =
  /^\/([^/]+\/[^/]+)\/actions\/runs\/(\d+)(?:\/attempts\/\d+)?(?:\/jobs?\/(\d+))?\/?$/;

/**
 * Parses a subject.
 * @param labels - value of `--labels`
 * @throws CliError `usage`
 */
export function parseSubject(text: string, labels?: string): Subject {
  const subject = withoutLabels(text);
  if (labels === undefined) return subject;
  if (subject.kind !== 'job')
    throw new CliError('usage', '--labels: must be used with the URL or ID of a job');
  const list = labels.split(',').map((label) => label.trim());
  return { ...subject, labels: list.filter((label) => label !== '') };
}

function withoutLabels(text: string): Subject {
  if (/^\d+$/.test(text)) return { kind: 'job', jobId: text };
  if (!/^https?:\/\//.test(text)) return { kind: 'named', name: text };
  const path = URL.canParse(text) ? new URL(text).pathname : '';
  const [, repository, runId, jobId] = RUN_PATH.exec(path) ?? [];
  if (repository === undefined || runId === undefined)
    throw new CliError(
      'usage',
      `"${text}" must be the URL of a run or job, such as https://github.com/acme/app/actions/runs/1/job/2; or give the ID of the job`,
    );
  return jobId === undefined
    ? { kind: 'run', runId, repository }
    : { kind: 'job', jobId, ...omitUndefined({ repository }) };
}
