/** Defines `holdfast runner|set|job get`. */
import type { Command } from 'commander';
import { withSession, type CommandContext } from './commandContext.ts';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import { CliError } from './exit.ts';
import type { Output } from './output.ts';
import { forEachId, type IdResult } from './forEachId.ts';
import type { Plural, ResourceKind } from './resourceKind.ts';
import type { Session } from './session.ts';
import { addWatchOptions, printOrWatch, type WatchFlags } from './watch.ts';
import { addWebOption, openObject, type WebFlag } from './web.ts';

/** Command `get` for one kind of object. */
export interface GetCommand {
  /** Argument as the help shows it, for example `<id...>`. */
  readonly argument: string;
  readonly description: string;
  readonly help: string;
  /** Imports the kind of object and the function that reads one, when the command runs. */
  readonly load: () => Promise<{
    readonly kind: ResourceKind;
    readonly read: (
      session: Session,
      id: string,
    ) => Promise<IdResult & { readonly ended: boolean }>;
  }>;
}

/** Adds the command, which shows one or several objects. */
export function addGetCommand(
  group: Command,
  context: CommandContext,
  { argument, description, help, load }: GetCommand,
): void {
  const command = addWebOption(addWatchOptions(group.command(`get ${argument}`)))
    .description(description)
    .addHelpText('after', help)
    .action(async (ids: string[], flags: WatchFlags & WebFlag) => {
      const { kind, read } = await load();
      await withSession(command, context, async (session) => {
        if (flags.web === true) return await openObject(session, context.output, kind, ids);
        await printOrWatch(context.output, flags, async (output) => {
          const { status, ended, lost } = await printEach(output, kind.plural, ids, (id) =>
            read(session, id),
          );
          // The watch goes on when Temporal answers again.
          if (lost !== undefined && flags.watch === true) throw lost;
          context.exit(status);
          return ended;
        });
      });
    });
}

/**
 * Prints each object.
 * @returns the exit status; whether all have ended or do not exist; and the error if Temporal did
 * not answer for one of several
 * @throws CliError if the only ID fails
 */
export async function printEach(
  output: Output,
  plural: Plural,
  ids: readonly string[],
  read: (id: string) => Promise<IdResult & { readonly ended: boolean }>,
): Promise<{ readonly status: number; readonly ended: boolean; readonly lost?: CliError }> {
  const open = new Set(ids);
  let lost: CliError | undefined;
  const status = await forEachId(output, plural, ids, async (id) => {
    try {
      const { ended, ...result } = await read(id);
      if (ended) open.delete(id);
      return result;
    } catch (error) {
      if (error instanceof CliError && error.code === 'unreachable') lost ??= error;
      else open.delete(id);
      throw error;
    }
  });
  return { status, ended: open.size === 0, ...omitUndefined({ lost }) };
}
