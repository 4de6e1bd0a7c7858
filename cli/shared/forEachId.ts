/** Runs one action for several IDs of a command. */
import pMap from 'p-map';
import { CliError, EXIT } from './exit.ts';
import type { Output } from './output.ts';
import type { Plural } from './resourceKind.ts';

/** Result of the action for one ID. */
export interface IdResult {
  readonly document: object;
  readonly lines: readonly string[];
  /**
   * Whether the exit status is 1.
   * @default false
   */
  readonly failed?: boolean;
}

/** Maximum concurrent requests to Temporal. */
const CONCURRENCY = 10;

/**
 * Runs the action for each ID and prints the results: one result as an object, several as a list. A
 * failure for one of several IDs is printed with the other results.
 * @returns the exit status: that of the first failure
 * @throws CliError if the only ID fails
 */
export async function forEachId(
  output: Output,
  plural: Plural,
  ids: readonly string[],
  act: (id: string) => Promise<IdResult>,
): Promise<number> {
  const [only, ...others] = [...new Set(ids)];
  if (only !== undefined && others.length === 0) {
    const { document, lines, failed = false } = await act(only);
    output.result(document, lines);
    return failed ? EXIT.failed : EXIT.ok;
  }
  const results = await pMap(
    [...new Set(ids)],
    async (id): Promise<IdResult | CliError> => {
      try {
        return await act(id);
      } catch (error) {
        if (error instanceof CliError) return error;
        throw error;
      }
    },
    { concurrency: CONCURRENCY },
  );
  const errors = results.filter((result) => result instanceof CliError);
  const done = results.filter((result): result is IdResult => !(result instanceof CliError));
  output.result(
    { [plural]: done.map(({ document }) => document) },
    joined(done.map(({ lines }) => lines)),
  );
  for (const error of errors) output.error(error);
  const [first] = errors;
  if (first !== undefined) return first.exitStatus;
  return done.some(({ failed }) => failed === true) ? EXIT.failed : EXIT.ok;
}

/** Separates results of several lines by an empty line. */
function joined(blocks: readonly (readonly string[])[]): string[] {
  if (blocks.every((lines) => lines.length <= 1)) return blocks.flat();
  return blocks.flatMap((lines, index) => (index === 0 ? lines : ['', ...lines]));
}
