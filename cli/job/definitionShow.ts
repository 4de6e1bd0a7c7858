/** `holdfast job definitions` and `holdfast job definition`. */
import pMap from 'p-map';
import {
  jobDeclarationQuery,
  readJobDefinitionId,
  type JobDefinitionInput,
  type JobDefinitionStatus,
  type JobTurnStatus,
} from '../../core/contract/index.ts';
import { defined } from '../../core/domain/omitUndefined.ts';
import type { Session } from '../shared/session.ts';
import type { Output } from '../shared/output.ts';
import { listTable, table, type Column } from '../shared/table.ts';
import { formatAge } from '../shared/text.ts';
import { askDefinition, describeDefinition, listDefinitionIds } from './definitionClient.ts';
import { NO_WORKER } from './jobClient.ts';

/** Asked at once. */
const AT_ONCE = 10;

/** Those that have not ended, by repository and name. */
export async function listDefinitions(
  session: Session,
  output: Output,
  limit: number,
): Promise<void> {
  const ids = await listDefinitionIds(session, limit + 1);
  const rows = await pMap(
    ids.slice(0, limit).toSorted(),
    async (id) => ({ id, ...readJobDefinitionId(id), ...(await statusOf(session, id)) }),
    { concurrency: AT_ONCE },
  );
  const more = ids.length > limit;
  output.result(
    { definitions: rows, more },
    rows.length === 0 ? [] : [listTable(COLUMNS, rows, output.wide)],
  );
  if (output.json) return;
  if (rows.length === 0) output.note('none', 'no declared jobs; "holdfast job apply" makes them');
  if (more) output.note('more', `only ${limit} are shown: --limit shows more`);
}

const number = (all: readonly unknown[] | undefined): string =>
  all === undefined ? '?' : String(all.length);

const COLUMNS: readonly Column<
  Partial<JobDefinitionStatus> & { readonly id: string; readonly note?: string }
>[] = [
  { head: 'NAME', cell: ({ name, id }) => name ?? id },
  { head: 'REPOSITORY', cell: ({ repository }) => repository },
  { head: 'RUNNING', cell: ({ running }) => number(running) },
  { head: 'WAITING', cell: ({ waiting }) => number(waiting) },
  { head: 'NEXT', cell: ({ nextScheduledAt }) => nextScheduledAt },
  { head: 'ID', cell: ({ id }) => id, wide: true },
  { head: 'AT ONCE', cell: ({ maxConcurrency }) => maxConcurrency?.toString(), wide: true },
  { head: 'NOTE', cell: noteOf },
];

async function statusOf(
  session: Session,
  id: string,
): Promise<Partial<JobDefinitionStatus> & { note?: string }> {
  try {
    return (await askDefinition(session, id)) ?? { note: NO_WORKER };
  } catch (error) {
    // It has ended since it was listed, or what it says cannot be read: the others are listed all the same.
    return { note: error instanceof Error ? error.message : String(error) };
  }
}

function noteOf({
  note,
  refused,
  paused,
  ending,
}: Partial<JobDefinitionStatus> & { readonly note?: string }): string | undefined {
  return (
    note ??
    (ending !== undefined
      ? 'is being deleted'
      : paused !== undefined
        ? `paused${paused === '' ? '' : `: ${paused}`}`
        : refused && 'its last declaration was refused')
  );
}

/** @returns whether it has ended */
export async function getDefinition(
  session: Session,
  output: Output,
  nameOrId: string,
): Promise<boolean> {
  const { workflowId, runId, status } = await describeDefinition(session, nameOrId);
  const definition = await askDefinition(session, workflowId);
  const declaration =
    definition === undefined
      ? undefined
      : ((await session.call(
          (client) => client.workflow.getHandle(workflowId).query(jobDeclarationQuery),
          { workflowId },
        )) ?? undefined);
  const details = {
    id: workflowId,
    status: status.name,
    ...defined({
      definition,
      declaration,
      note: definition === undefined ? NO_WORKER : undefined,
      ui: session.link(workflowId, runId),
    }),
  };
  output.result(details, definitionLines(details, Date.now()));
  return details.status !== 'RUNNING';
}

interface Details {
  readonly id: string;
  /** Temporal's: RUNNING, COMPLETED, … */
  readonly status: string;
  /** Absent when no worker answers. */
  readonly definition?: JobDefinitionStatus;
  readonly declaration?: JobDefinitionInput;
  readonly note?: string;
  readonly ui?: string;
}

/** @param now - ms since the epoch */
export function definitionLines(
  { id, status, definition, declaration, note, ui }: Details,
  now: number,
): string[] {
  const {
    name,
    repository,
    refused,
    paused,
    ending,
    maxConcurrency,
    nextScheduledAt,
    running = [],
    waiting = [],
    ended = [],
    leftOut = [],
  } = definition ?? {};
  const rows: [string, string | undefined][] = [
    ['Job', name],
    ['Repository', repository],
    ['Id', id],
    ['Status', status.toLowerCase()],
    ['Started by', declaration && Object.keys(declaration.on).join(', ')],
    [
      'Outsiders',
      declaration && (declaration.untrusted === true ? 'may start it' : 'start nothing'),
    ],
    [
      'At once',
      maxConcurrency === undefined ? undefined : `${running.length} of ${maxConcurrency}`,
    ],
    ['Scheduled next', nextScheduledAt],
    ['Begins nothing', paused === undefined ? undefined : paused || 'paused'],
    [
      'Ends',
      ending === undefined ? undefined : `when its runs have${ending === '' ? '' : `: ${ending}`}`,
    ],
    ['Refused', refused && `${refused.why} (${refused.at})`],
    ['Link', ui],
    ['Note', note],
  ];
  const age = (iso: string): string => formatAge(now - Date.parse(iso));
  const turn =
    (state: string) =>
    (each: JobTurnStatus): string[] => [
      state,
      each.version,
      age(each.since),
      each.untrusted === true ? 'yes' : '-',
      each.group,
    ];
  const turns = [
    ...running.map(turn('running')),
    ...waiting.map(turn('waiting')),
    ...ended.map((each) => turn(each.outcome ?? 'over')(each)),
  ];
  return [
    ...rows
      .filter(([, value]) => value !== undefined && value !== '')
      .map(([field, value]) => `${`${field}:`.padEnd(18)}${value}`),
    ...(turns.length === 0
      ? []
      : ['', ...table(['STATE', 'VERSION', 'SINCE', 'OUTSIDER', 'RUNS'], turns).split('\n')]),
    ...(leftOut.length === 0
      ? []
      : [
          '',
          ...table(
            ['LEFT OUT', 'AGE', 'WHY'],
            leftOut.map(({ what, at, why }) => [what, age(at), why]),
          ).split('\n'),
        ]),
  ];
}
