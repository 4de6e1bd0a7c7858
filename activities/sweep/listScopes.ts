/** The registrations at the CI server, by scope. */
import pMap from 'p-map';
import { UnknownCredentialError, type CiRunner } from '../ports/ciServer.ts';
import { CiServerError } from '../ports/ciServerError.ts';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import type { CredentialScope, SweepSpec } from '../../core/input/sweep.ts';
import type { SweepSources } from './sweepSources.ts';
import type { RunnerWorkflows } from './runnerWorkflows.ts';
import { errorMessage } from '../../core/domain/errorMessage.ts';

/** Maximum number of concurrent list requests, so that other clients can use the CI server too. */
const AT_ONCE = 4;

/** A scope whose registrations are listed. */
interface WantedScope extends CredentialScope {
  /**
   * Whether an existing pod or Secret, or the input of the sweep, names the scope. Otherwise only
   * workflow inputs name it, which anyone who can start workflows may have written.
   */
  readonly isNoted: boolean;
}

/** The registered runners of one scope. */
export interface ListedScope extends CredentialScope {
  readonly runners: readonly CiRunner[];
}

/** The scopes that were listed, and those that could not be. */
export interface ListedScopes {
  readonly listed: readonly ListedScope[];
  /**
   * Number of scopes that only workflow inputs name and that the credential cannot see. Most of
   * them no longer exist.
   */
  readonly notVisible: number;
  /** Scopes that pods, Secrets or the input name, and that the credential cannot see. */
  readonly skippedLists: readonly { list: string; reason: string }[];
  /** Lists that failed for another reason. */
  readonly incompleteLists: readonly { list: string; reason: string }[];
}

/**
 * Lists the registrations of all scopes that the sweep knows of.
 * @param noted - scopes that pods and Secrets name
 * @throws the abort reason of the signal
 */
export async function listScopes(
  { ciServers, signal }: SweepSources,
  spec: SweepSpec,
  workflows: RunnerWorkflows,
  noted: readonly CredentialScope[],
): Promise<ListedScopes> {
  const scopes = await wantedScopes(spec, workflows, noted);
  const listed: ListedScope[] = [];
  const incompleteLists: { list: string; reason: string }[] = [];
  const skippedLists: { list: string; reason: string }[] = [];
  let notVisible = 0;
  await pMap(
    scopes,
    async ({ scope, credential, isNoted }) => {
      try {
        listed.push({
          scope,
          credential,
          runners: await ciServers.get(credential).listRunners(scope, signal),
        });
      } catch (error) {
        signal?.throwIfAborted();
        const unlisted = {
          list: `registrations of ${scope.kind} ${scope.name}`,
          reason: errorMessage(error),
        };
        if (!isNotVisible(error)) incompleteLists.push(unlisted);
        else if (isNoted) skippedLists.push(unlisted);
        else notVisible += 1;
      }
    },
    { concurrency: AT_ONCE, ...omitUndefined({ signal }) },
  );
  return { listed, notVisible, incompleteLists, skippedLists };
}

async function wantedScopes(
  spec: SweepSpec,
  workflows: RunnerWorkflows,
  noted: readonly CredentialScope[],
): Promise<WantedScope[]> {
  const wanted = new Map<string, WantedScope>();
  for (const entry of [...spec.scopes, ...noted])
    wanted.set(`${entry.scope.kind} ${entry.scope.name}`, { ...entry, isNoted: true });
  const known = new Set([...wanted.values()].map(({ scope }) => scope.name));
  for (const runner of await workflows.oneOfEachScope()) {
    if (known.has(runner.scope)) continue;
    // Visibility records name the scope, but not its kind or the credential.
    const at = (await workflows.input(runner))?.at;
    if (at !== undefined)
      wanted.set(`${at.scope.kind} ${at.scope.name}`, { ...at, isNoted: false });
  }
  return [...wanted.values()];
}

function isNotVisible(error: unknown): boolean {
  return (
    error instanceof UnknownCredentialError ||
    (error instanceof CiServerError && (error.kind === 'credentials' || error.kind === 'rejected'))
  );
}
