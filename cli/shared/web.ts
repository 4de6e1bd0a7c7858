/** Implements `--web`: opens a page of Temporal's UI in the browser. */
import { Option, type Command } from 'commander';
import { CliError } from './exit.ts';
import type { Output } from './output.ts';
import type { ResourceKind } from './resourceKind.ts';
import type { Session } from './session.ts';

/** Option that {@link addWebOption} adds. */
export interface WebFlag {
  readonly web?: boolean;
}

/** Adds `--web` to a command. */
export function addWebOption(command: Command): Command {
  return command.addOption(
    new Option('--web', "Open Temporal's UI in the browser instead").conflicts('watch'),
  );
}

/**
 * Opens the list that a filter selects.
 * @throws CliError `usage` if the URL of the UI is not known; `failed` without a browser
 */
export async function openList(session: Session, output: Output, query: string): Promise<void> {
  await openPage(output, session.listLink(query));
}

/**
 * Opens the page of an object.
 * @throws CliError `usage` if the URL of the UI is not known, or for several IDs; `not_found`;
 * `failed` without a browser
 */
export async function openObject(
  session: Session,
  output: Output,
  kind: ResourceKind,
  ids: readonly string[],
): Promise<void> {
  const [id, ...others] = ids;
  if (id === undefined || others.length > 0)
    throw new CliError('usage', `--web opens one page; give one ${kind.noun}`);
  const { describeResource } = await import('./resource.ts');
  const { workflowId, runId } = await describeResource(session, kind, id);
  await openPage(output, session.link(workflowId, runId));
}

async function openPage(output: Output, ui: string | undefined): Promise<void> {
  if (ui === undefined)
    throw new CliError(
      'usage',
      "--web: the URL of Temporal's UI is not known; set --ui-url or HOLDFAST_TEMPORAL_UI_URL, for example to http://localhost:8233",
    );
  const { default: open } = await import('open');
  try {
    await open(ui);
  } catch (error) {
    throw new CliError(
      'failed',
      `failed to open a browser: ${(error as Error).message}; see ${ui}`,
      {
        cause: error,
      },
    );
  }
  output.result({ ui }, [`opening ${ui}`]);
}
