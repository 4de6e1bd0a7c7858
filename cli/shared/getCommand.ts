/** Defines `holdfast runner|set|job get`. */
import type { Command } from 'commander';
import { withSession, type CommandContext } from './commandContext.ts';
import { forEachId, type IdResult } from './forEachId.ts';
import type { Plural } from './resourceKind.ts';
import type { Session } from './session.ts';
import { addWatchOptions, printOrWatch, type WatchFlags } from './watch.ts';

/** Command `get` for one kind of object. */
export interface GetCommand {
  readonly plural: Plural;
  /** Argument as the help shows it, for example `<id...>`. */
  readonly argument: string;
  readonly description: string;
  readonly help: string;
  /** Imports the function that reads an object, when the command runs. */
  readonly load: () => Promise<
    (session: Session, id: string) => Promise<IdResult & { readonly ended: boolean }>
  >;
}

/** Adds the command, which shows one or several objects. */
export function addGetCommand(
  group: Command,
  context: CommandContext,
  { plural, argument, description, help, load }: GetCommand,
): void {
  const command = addWatchOptions(group.command(`get ${argument}`))
    .description(description)
    .addHelpText('after', help)
    .action(async (ids: string[], flags: WatchFlags) => {
      const read = await load();
      await withSession(command, context, async (session) => {
        await printOrWatch(context.output, flags, async (output) => {
          let running = 0;
          const status = await forEachId(output, plural, ids, async (id) => {
            const { ended, ...result } = await read(session, id);
            if (!ended) running++;
            return result;
          });
          context.exit(status);
          return running === 0;
        });
      });
    });
}
