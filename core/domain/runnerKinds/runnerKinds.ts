import type { CiServerKind } from '../ciServerKind.ts';
import { COMMAND_RUNNER } from './command.ts';
import { GITEA_RUNNER } from './gitea.ts';
import { GITHUB_RUNNER } from './gitHub.ts';
import type { RunnerKind, TokenRegistration } from './runnerKind.ts';

const KINDS = { github: GITHUB_RUNNER, gitea: GITEA_RUNNER, command: COMMAND_RUNNER } as const;
/** Name of a kind of runner. `command` is a plain command without a CI server. */
export type RunnerKindName = keyof typeof KINDS;

/** The kinds of runners, by name. */
export const RUNNER_KINDS: Readonly<Record<RunnerKindName, RunnerKind>> = KINDS;

/** Names of all kinds of runners. */
export const RUNNER_KIND_NAMES = Object.keys(KINDS) as readonly RunnerKindName[];

/** Kind of the runners of each kind of CI server. */
export const RUNNER_KIND_OF_SERVER: Readonly<Record<CiServerKind, RunnerKindName>> = {
  github: 'github',
  gitea: 'gitea',
};

/**
 * Whether a CI server assigns jobs to runners of this kind. Otherwise their command is their only
 * job.
 */
export function takesJobs(kind: RunnerKindName): boolean {
  return RUNNER_KINDS[kind].registration !== undefined;
}

/**
 * Whether an image is the one that another kind of runner has by default, so that a runner of this
 * kind cannot use it.
 */
export const isImageOfOtherKind = (image: string | undefined, kind: RunnerKindName): boolean =>
  RUNNER_KINDS[kind].image?.name !== image &&
  Object.values(RUNNER_KINDS).some((other) => image !== undefined && other.image?.name === image);

const registrations = Object.values(RUNNER_KINDS).flatMap(({ registration }) => registration ?? []);
const variables = new Set(registrations.flatMap((registration) => registration.variables));
const prefixes = registrations.flatMap(({ variablePrefixes }) => variablePrefixes);

const tokens = registrations.flatMap(({ token }) => token ?? []);

/** Variables with registration tokens of all kinds. */
export const TOKEN_VARIABLES: readonly string[] = tokens.map(({ variable }) => variable);

/**
 * Returns the registration whose token is in one of these variables, or `undefined` if none is a
 * token.
 */
export function registrationWithToken(names: readonly string[]): TokenRegistration | undefined {
  return tokens.find(({ variable }) => names.includes(variable));
}

/** Whether the variable contains a registration of any kind of runner. */
export function isRegistrationVariable(name: string): boolean {
  return variables.has(name) || prefixes.some((prefix) => name.startsWith(prefix));
}
