/** Environment in which the supervisor was started. */
export interface ProcessContext {
  readonly ppid: number;
  readonly parentName: string | undefined;
  readonly parentCommandLine: readonly string[] | undefined;
  readonly ownCommandLine: readonly string[] | undefined;
  /**
   * Whether HOLDFAST_ASSUME_DEDICATED_PID1=1 is set: the author of the container's command
   * guarantees that its init runs only the supervisor.
   */
  readonly assumedDedicated: boolean;
}

/**
 * Processes that belong to the command.
 *
 * - `namespace`: all processes except PID 1 and the supervisor
 * - `family`: the descendants of `root`, except the supervisor and `root`
 */
export type KillScope =
  { readonly kind: 'namespace' } | { readonly kind: 'family'; readonly root: number | 'self' };

/**
 * Returns the scope of a kill. kill(-1) reaches every process of the PID namespace. This is correct
 * only if the namespace is a single container that runs only the command: PID 1 is a tini that was
 * started to run exactly this command line. With hostPID, PID 1 is the node's. With a shared
 * process namespace it is the pause container, and our tini has another id.
 *
 * A tini that is not PID 1 but runs exactly the supervisor is still useful: with `-s` it adopts
 * every orphan, so that its descendants are complete.
 */
export function killScope(facts: ProcessContext): KillScope {
  const tini = /^tini(-static)?$/.test(facts.parentName ?? '');
  const runsUs = tini && endsWith(facts.parentCommandLine, facts.ownCommandLine);
  if (facts.ppid === 1 && (runsUs || (tini && facts.assumedDedicated)))
    return { kind: 'namespace' };
  return { kind: 'family', root: runsUs ? facts.ppid : 'self' };
}

/**
 * Whether one command line ends with another. What follows an init's own options is the command
 * that it runs.
 */
function endsWith(
  whole: readonly string[] | undefined,
  end: readonly string[] | undefined,
): boolean {
  if (whole === undefined || end === undefined || end.length === 0 || whole.length <= end.length)
    return false;
  return end.every((word, index) => word === whole[whole.length - end.length + index]);
}
