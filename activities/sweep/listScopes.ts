/** The registrations at the CI server, scope by scope. */
import pMap from 'p-map';
import { UnknownCredentialError, CiServerError, type CiRunner } from '../ports.ts';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import type { CredentialScope, SweepSpec } from '../../core/input/sweep.ts';
import type { SweepSources } from './sweepSources.ts';
import type { RunnerWorkflows } from './runnerWorkflows.ts';

/** Lists asked for at once: others need the CI server, too. */
const AT_ONCE = 4;

/** A scope to look at. */
interface WantedScope extends CredentialScope {
  /** A pod or a Secret that is there names it, or whoever asked for the sweep; else only lives do, whose inputs anybody may have written. */
  readonly isNoted: boolean;
}

/** All runners of one scope. */
export interface ListedScope extends CredentialScope {
  readonly runners: readonly CiRunner[];
}

export interface ListedScopes {
  readonly listed: readonly ListedScope[];
  /** Scopes that only lives name, and that the credential cannot see: gone, most likely. */
  readonly notVisible: number;
  /** Scopes that pods or Secrets name, or that were asked for, and that the credential may not see (any more). */
  readonly skippedLists: readonly { list: string; reason: string }[];
  readonly incompleteLists: readonly { list: string; reason: string }[];
}

/** @param noted - scopes that pods and Secrets name */
export async function listScopes(
  { ciServers, signal }: SweepSources,
  spec: SweepSpec,
  lives: RunnerWorkflows,
  noted: readonly CredentialScope[],
): Promise<ListedScopes> {
  const scopes = await wantedScopes(spec, lives, noted);
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
          reason: error instanceof Error ? error.message : String(error),
        };
        if (!isOutOfSight(error)) incompleteLists.push(unlisted);
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
  lives: RunnerWorkflows,
  noted: readonly CredentialScope[],
): Promise<WantedScope[]> {
  const wanted = new Map<string, WantedScope>();
  for (const each of [...spec.scopes, ...noted])
    wanted.set(`${each.scope.kind} ${each.scope.name}`, { ...each, isNoted: true });
  const known = new Set([...wanted.values()].map(({ scope }) => scope.name));
  for (const life of await lives.oneOfEachScope()) {
    if (known.has(life.scope)) continue;
    // Lists of lives name the scope, and neither its kind nor the credential.
    const at = (await lives.input(life))?.at;
    if (at !== undefined)
      wanted.set(`${at.scope.kind} ${at.scope.name}`, { ...at, isNoted: false });
  }
  return [...wanted.values()];
}

function isOutOfSight(error: unknown): boolean {
  return (
    error instanceof UnknownCredentialError ||
    (error instanceof CiServerError && (error.kind === 'credentials' || error.kind === 'rejected'))
  );
}
