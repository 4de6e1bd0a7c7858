/** One action for several IDs of a command. */
import pMap from 'p-map';
import { errorMessage } from '../../core/domain/errorMessage.ts';
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

/** Waits for the result of an action that has been requested. */
export type Awaited = () => Promise<IdResult>;

/** Maximum concurrent requests to Temporal. */
const CONCURRENCY = 10;

/**
 * Acts on each ID and prints the results: a single one as itself, several as a list. The failure of
 * one of several is printed, and does not hide the others.
 * @param act - requests the action. If it returns a function, that is called after all requests, so
 * that a wait for one ID does not delay the requests for the others
 * @param concurrency - maximum concurrent requests; 1 if the user may be asked
 * @returns the exit status: that of the first failure
 * @throws CliError if the only ID fails
 */
export async function forEachId(
  output: Output,
  plural: Plural,
  ids: readonly string[],
  act: (id: string) => Promise<IdResult | Awaited>,
  concurrency = CONCURRENCY,
): Promise<number> {
  const distinct = [...new Set(ids)];
  const [only, ...others] = distinct;
  if (only !== undefined && others.length === 0) {
    const { document, lines, failed = false } = await finished(await act(only));
    output.result(document, lines);
    return failed ? EXIT.failed : EXIT.ok;
  }
  const requested = await pMap(distinct, async (id) => await orError(act(id)), { concurrency });
  const results = await Promise.all(
    requested.map(async (each) =>
      each instanceof CliError ? each : await orError(finished(each)),
    ),
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

const finished = async (result: IdResult | Awaited): Promise<IdResult> =>
  typeof result === 'function' ? await result() : result;

async function orError<T>(acting: Promise<T>): Promise<T | CliError> {
  try {
    return await acting;
  } catch (error) {
    if (error instanceof CliError) return error;
    return new CliError('failed', errorMessage(error), { cause: error });
  }
}

/** Separates results of several lines by an empty line. */
function joined(blocks: readonly (readonly string[])[]): string[] {
  if (blocks.every((lines) => lines.length <= 1)) return blocks.flat();
  return blocks.flatMap((lines, index) => (index === 0 ? lines : ['', ...lines]));
}
