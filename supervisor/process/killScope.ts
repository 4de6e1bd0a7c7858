/** What the supervisor knows of where it runs, at its start. */
export interface ProcessContext {
  readonly ppid: number;
  readonly parentName: string | undefined;
  readonly parentCommandLine: readonly string[] | undefined;
  readonly ownCommandLine: readonly string[] | undefined;
  /** HOLDFAST_ASSUME_DEDICATED_PID1=1: whoever wrote the container's command vouches that its init runs nothing but us. */
  readonly assumedDedicated: boolean;
}

/**
 * Which processes are the command's.
 * `namespace`: all but PID 1 and us. `family`: those that descend from `root`, ourselves and root excepted.
 */
export type KillScope =
  { readonly kind: 'namespace' } | { readonly kind: 'family'; readonly root: number | 'self' };

/**
 * kill(-1) reaches every process of the PID namespace. It is right only where that is one container and all of it ours: PID 1 is
 * a tini that was started to run exactly this command line. With hostPID, PID 1 is the node's; with a shared process namespace
 * it is the pause container; our tini has another number then.
 * A tini that is not PID 1 but runs exactly us is still of use: with `-s` it adopts every orphan, so that its descendants are
 * complete.
 */
export function killScope(facts: ProcessContext): KillScope {
  const tini = /^tini(-static)?$/.test(facts.parentName ?? '');
  const runsUs = tini && endsWith(facts.parentCommandLine, facts.ownCommandLine);
  if (facts.ppid === 1 && (runsUs || (tini && facts.assumedDedicated)))
    return { kind: 'namespace' };
  return { kind: 'family', root: runsUs ? facts.ppid : 'self' };
}

/** The words after an init's own options are what it runs. */
function endsWith(
  whole: readonly string[] | undefined,
  end: readonly string[] | undefined,
): boolean {
  if (whole === undefined || end === undefined || end.length === 0 || whole.length <= end.length)
    return false;
  return end.every((word, index) => word === whole[whole.length - end.length + index]);
}
