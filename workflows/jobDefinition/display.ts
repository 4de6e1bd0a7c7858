/** How people see a declared job: the `status` query, and the details in Temporal's UI. */
import {
  readJobDefinitionId,
  type JobDefinitionStatus,
  type JobTurnStatus,
} from '../../core/contract/index.ts';
import { defined } from '../../core/domain/omitUndefined.ts';
import { isoTime } from '../../core/domain/isoTime.ts';
import { markdownText } from '../../core/domain/displayText.ts';
import type { CarriedDefinition } from './carried.ts';
import type { Turn } from './turns.ts';

/** Rows of what waits: the UI is for a look. */
const MAX_ROWS = 20;

/** @param workflowId - says what it is called while no declaration was good */
export function definitionStatus(
  workflowId: string,
  { generation, admitted, turns, refused, paused, ending, ended, leftOut }: CarriedDefinition,
  checking: boolean,
): JobDefinitionStatus {
  const { name, repository } = admitted?.spec ??
    readJobDefinitionId(workflowId) ?? { name: '', repository: '' };
  const { maxConcurrency } = admitted?.spec ?? {};
  const nextScheduledAt =
    admitted?.nextAtMs === undefined || ending !== undefined
      ? undefined
      : isoTime(admitted.nextAtMs);
  return {
    name,
    repository,
    generation,
    checking,
    ...defined({ refused, paused, ending, maxConcurrency, nextScheduledAt }),
    running: turns.running.map(turnStatus),
    waiting: turns.waiting.map(turnStatus),
    ended: [...ended],
    leftOut: [...leftOut],
  };
}

function turnStatus({ group, version, since, source }: Turn): JobTurnStatus {
  return { group, version, since, ...(source.untrusted === true ? { untrusted: true } : {}) };
}

/** Markdown for the UI. */
export function definitionDetails({
  name,
  repository,
  refused,
  paused,
  ending,
  maxConcurrency,
  running,
  waiting,
  nextScheduledAt,
  ended,
  leftOut,
}: JobDefinitionStatus): string {
  const row = (what: string, value: string | undefined): string[] =>
    value === undefined ? [] : [`| ${what} | ${markdownText(value)} |`];
  const list = (title: string, rows: readonly string[]): string[] =>
    rows.length === 0
      ? []
      : [
          '',
          `**${title}**`,
          '',
          ...rows.slice(0, MAX_ROWS).map((each) => `- ${markdownText(each)}`),
          ...(rows.length > MAX_ROWS ? [`- … and ${rows.length - MAX_ROWS} more`] : []),
        ];
  const turn = ({ group, version, since, untrusted }: JobTurnStatus): string =>
    `${group} ${version}, since ${since}${untrusted === true ? ", an outsider's" : ''}`;
  return [
    `| Job | ${markdownText(name)} |`,
    '|---|---|',
    ...row('Repository', repository),
    ...row('Refused', refused && `${refused.why} (${refused.at})`),
    ...row('Begins nothing', paused === undefined ? undefined : paused || 'paused'),
    ...row('Ends when its runs have', ending),
    ...row(
      'At once',
      maxConcurrency === undefined ? undefined : `${running.length} of ${maxConcurrency}`,
    ),
    ...row('Scheduled next', nextScheduledAt),
    ...list('Under way', running.map(turn)),
    ...list('Waits', waiting.map(turn)),
    ...list(
      'Over',
      ended.map(({ outcome = 'outcome unknown', ...each }) => `${turn(each)}: ${outcome}`),
    ),
    ...list(
      'Left out',
      leftOut.map(({ what, why, at }) => `${what}: ${why} (${at})`),
    ),
  ].join('\n');
}
