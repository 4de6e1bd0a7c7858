/** How GitHub shows the run of a job: its words and colours, in its limits. Pure. */
import type { CommitReport } from '../../../core/domain/commitReport.ts';
import { printable, shorten } from '../../../core/domain/displayText.ts';

/** https://docs.github.com/en/rest/commits/statuses */
export interface ShownStatus {
  readonly state: 'pending' | 'success' | 'failure' | 'error';
  readonly context: string;
  readonly description: string;
  readonly target_url?: string;
}

/** https://docs.github.com/en/rest/checks/runs */
export interface ShownCheckRun {
  readonly name: string;
  readonly external_id: string;
  readonly details_url?: string;
  readonly status: 'queued' | 'in_progress' | 'completed';
  readonly conclusion?: 'success' | 'failure' | 'action_required' | 'cancelled' | 'timed_out';
  readonly started_at?: string;
  readonly completed_at?: string;
  readonly output: { readonly title: string; readonly summary: string };
}

/** Its limits, in characters: of a status GitHub says 422 to more; the others are far beyond what people read. */
const LONGEST = {
  context: 255,
  description: 140,
  externalId: 255,
  title: 200,
  line: 1_000,
  summary: 60_000,
} as const;

/** A status has four colours for six states: what was aborted says as little of the commit as what had no infrastructure, and its words tell them apart. */
const STATES: Readonly<Record<CommitReport['state'], ShownStatus['state']>> = {
  queued: 'pending',
  running: 'pending',
  succeeded: 'success',
  failed: 'failure',
  errored: 'error',
  aborted: 'error',
};

/** Somebody has to do something about what is `errored`, and it is not who wrote the commit. */
const CHECKS: Readonly<
  Record<CommitReport['state'], Pick<ShownCheckRun, 'status' | 'conclusion'>>
> = {
  queued: { status: 'queued' },
  running: { status: 'in_progress' },
  succeeded: { status: 'completed', conclusion: 'success' },
  failed: { status: 'completed', conclusion: 'failure' },
  errored: { status: 'completed', conclusion: 'action_required' },
  aborted: { status: 'completed', conclusion: 'cancelled' },
};

/** The commit status. Its description is shown as text; but GitHub takes no character beyond the first 65,536 there. */
export function shownStatus({ state, context, description, link }: CommitReport): ShownStatus {
  const text = shorten(
    printable(description).replaceAll(/[\u{10000}-\u{10FFFF}]/gu, '\uFFFD'),
    LONGEST.description,
  );
  return {
    state: STATES[state],
    context: context.slice(0, LONGEST.context),
    description: text,
    ...(link === undefined ? {} : { target_url: link }),
  };
}

/** The check run. Its summary is Markdown: all of it is a block of code, in which nothing has a meaning, neither `@somebody` nor `#1`. */
export function shownCheckRun({
  state,
  cause,
  context,
  run,
  at,
  description,
  details,
  link,
}: CommitReport): ShownCheckRun {
  const timedOut = state === 'aborted' && cause === 'run_timeout';
  const check = timedOut ? { ...CHECKS[state], conclusion: 'timed_out' as const } : CHECKS[state];
  return {
    name: context.slice(0, LONGEST.context),
    // Its end has the run's number.
    external_id: run.slice(-LONGEST.externalId),
    ...(link === undefined ? {} : { details_url: link }),
    ...check,
    ...(check.status === 'in_progress' ? { started_at: at } : {}),
    ...(check.status === 'completed' ? { completed_at: at } : {}),
    output: {
      title: shorten(printable(description), LONGEST.title),
      summary: codeBlock([description, ...details]),
    },
  };
}

/** With a fence that is longer than any in it: https://spec.commonmark.org/0.31.2/#fenced-code-blocks */
function codeBlock(lines: readonly string[]): string {
  const text = shorten(
    lines.map((line) => shorten(printable(line), LONGEST.line)).join('\n'),
    LONGEST.summary,
  );
  const longest = Math.max(2, ...[...text.matchAll(/`+/g)].map(([ticks]) => ticks.length));
  const fence = '`'.repeat(longest + 1);
  return `${fence}text\n${text}\n${fence}`;
}
