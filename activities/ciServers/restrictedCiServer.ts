/** Restricts a credential to the use that the worker's configuration permits, for all workflows. */
import {
  scopeKeys,
  type RegisterRequest,
  type RunnerGroupRef,
  type Scope,
} from '../../core/domain/ciServer.ts';
import { matchesPattern } from '../../core/domain/filterPattern.ts';
import { isLocationLabel } from '../compute/naming.ts';
import type { ScaleSetRequest } from '../../core/domain/scaleSet.ts';
import { CiServerError } from '../ports/ciServerError.ts';
import type { CiServer } from '../ports/ciServer.ts';
import type { JobReruns } from '../ports/jobReruns.ts';
import type { ScaleSets } from '../ports/scaleSets.ts';
import type { Credential } from './credentials.ts';

/** Label of every self-hosted runner. */
const SELF_HOSTED = 'self-hosted';

/**
 * Returns the same server, restricted to the `scopes`, `groups` and `labels` of the credential. The
 * restrictions are checked at admission, where the user sees the error. They are checked again in
 * every call, because anyone who can write to the Temporal namespace can run activities with any
 * input.
 */
export function restrictCiServer(
  server: CiServer,
  name: string,
  { scopes, groups, labels }: Pick<Credential, 'scopes' | 'groups' | 'labels'>,
): CiServer {
  if (scopes === undefined && groups === undefined && labels === undefined) return server;
  const covered = scopes && new Set(scopes.map((scope) => scope.toLowerCase()));

  const accessError: NonNullable<CiServer['accessError']> = (scope, group, runner = {}) => {
    const refused = server.accessError?.(scope, group, runner);
    if (refused !== undefined) return refused;
    if (covered !== undefined && !scopeKeys(scope).some((key) => covered.has(key))) {
      return `credential "${name}" is not for ${scopeKeys(scope).at(-1)}: the worker's config has it for ${scopes?.join(', ')}`;
    }
    const id = group && knownGroupId(group);
    return (id === undefined ? undefined : refusesGroup(id)) ?? refusesRunner(runner);
  };
  const refusesRunner = ({
    labels: asked = [],
    mode,
  }: Partial<Pick<RegisterRequest, 'labels' | 'mode'>>): string | undefined => {
    // A registration token is valid for the whole scope, regardless of the requested group, and the
    // command of the runner can read it.
    if (groups !== undefined && mode === 'token')
      return `credential "${name}" is for some runner groups only, which the registration token of a static runner is not bound to: use ephemeral runners, or a credential without groups`;
    const foreign = asked.find((label) => !isAllowedLabel(label));
    return foreign === undefined
      ? undefined
      : `credential "${name}" is not for the label "${foreign}": the worker's config has it for ${labels?.join(', ')}`;
  };
  const isAllowedLabel = (label: string): boolean =>
    labels === undefined ||
    label.toLowerCase() === SELF_HOSTED ||
    isLocationLabel(label) ||
    labels.some((pattern) => matchesPattern(pattern.toLowerCase(), label.toLowerCase()));
  /**
   * Returns the ID of a group, or `undefined` for a group that is given by name, whose ID only the
   * server knows.
   */
  const knownGroupId = (group: RunnerGroupRef): string | undefined => {
    if (group === 'default') return server.traits.groups?.defaultId;
    return 'id' in group ? group.id : undefined;
  };
  const refusesGroup = (id: string, groupName?: string): string | undefined => {
    if (groups?.includes(id) !== false) return undefined;
    return `credential "${name}" is not for runner group ${groupName === undefined ? id : `"${groupName}" (${id})`}: the worker's config has it for ${groups.join(', ')}`;
  };
  const refuse = (reason: string | undefined): void => {
    if (reason !== undefined) throw new CiServerError('rejected', reason);
  };
  const check = (scope: Scope): void => refuse(accessError(scope));
  /** Replaces the group by its ID, because a name may be given to another group. */
  const withGroupId = async (
    request: RegisterRequest,
    signal?: AbortSignal,
  ): Promise<RegisterRequest> => {
    const { scope, group } = request;
    check(scope);
    refuse(refusesRunner(request));
    if (groups === undefined) return request;
    const groupName = group !== 'default' && 'name' in group ? group.name : undefined;
    const id =
      groupName === undefined
        ? knownGroupId(group)
        : await server.runnerGroupId?.(scope, groupName, signal);
    if (id === undefined)
      throw new CiServerError(
        'rejected',
        `credential "${name}" is for some runner groups only, and this CI server has none: remove groups`,
      );
    refuse(refusesGroup(id, groupName));
    return { ...request, group: { id } };
  };

  return {
    kind: server.kind,
    traits: server.traits,
    accessError,
    ...(server.isReachable && { isReachable: () => server.isReachable?.() !== false }),
    ...(server.redeliverFailed && {
      redeliverFailed: async (limits, signal) =>
        (await server.redeliverFailed?.(limits, signal)) ?? { redelivered: 0, postponed: 0 },
    }),
    ...(server.publicGroups && {
      async publicGroups(scope, signal) {
        check(scope);
        return (await server.publicGroups?.(scope, signal)) ?? [];
      },
    }),
    ...(server.disable && {
      async disable(scope, runnerId, signal) {
        check(scope);
        await server.disable?.(scope, runnerId, signal);
      },
    }),
    ...(server.listQueuedJobs && {
      async listQueuedJobs(scope, labels, signal, maxAgeMs) {
        check(scope);
        return (
          (await server.listQueuedJobs?.(scope, labels, signal, maxAgeMs)) ?? {
            jobs: [],
            complete: false,
          }
        );
      },
    }),
    ...(server.versionDeadline && {
      async versionDeadline(scope, version, signal) {
        check(scope);
        return await server.versionDeadline?.(scope, version, signal);
      },
    }),
    ...(server.getJob && {
      async getJob(scope, job, signal) {
        check(scope);
        return await server.getJob?.(scope, job, signal);
      },
    }),
    ...(server.scaleSets && {
      scaleSets: restrictScaleSets(server.scaleSets, check, async (request, signal) => {
        // A server that supports one label gives jobs the name of the scale set as label.
        const labels = [...request.labels, request.name];
        const { group } = await withGroupId(
          { ...request, labels, ephemeral: true, mode: 'jit' },
          signal,
        );
        return { ...request, group };
      }),
    }),
    ...(server.reruns && { reruns: restrictReruns(server.reruns, check) }),
    async register(request, signal) {
      return await server.register(await withGroupId(request, signal), signal);
    },
    async findRunner(scope, runner, signal) {
      check(scope);
      return await server.findRunner(scope, runner, signal);
    },
    async listRunners(scope, signal) {
      check(scope);
      return await server.listRunners(scope, signal);
    },
    async removeRegistration(scope, runnerId, signal) {
      check(scope);
      return await server.removeRegistration(scope, runnerId, signal);
    },
  };
}

/** Restricts the scale sets of a server as the server itself. */
function restrictScaleSets(
  scaleSets: ScaleSets,
  check: (scope: Scope) => void,
  restricted: (request: ScaleSetRequest, signal?: AbortSignal) => Promise<ScaleSetRequest>,
): ScaleSets {
  return {
    async find(request, signal) {
      return await scaleSets.find(await restricted(request, signal), signal);
    },
    async ensure(request, signal) {
      return await scaleSets.ensure(await restricted(request, signal), signal);
    },
    async relabel(scaleSet, request, signal) {
      return await scaleSets.relabel(scaleSet, await restricted(request, signal), signal);
    },
    async remove(request, signal) {
      return await scaleSets.remove(await restricted({ ...request, labels: [] }, signal), signal);
    },
    openSession: checkedFor(check, scaleSets.openSession.bind(scaleSets)),
    adoptSession: checkedFor(check, scaleSets.adoptSession.bind(scaleSets)),
    runnerId: checkedFor(check, scaleSets.runnerId.bind(scaleSets)),
    removeRunner: checkedFor(check, scaleSets.removeRunner.bind(scaleSets)),
  };
}

/** Restricts the reruns of a server as the server itself. */
function restrictReruns(reruns: JobReruns, check: (scope: Scope) => void): JobReruns {
  return {
    getJob: checkedFor(check, reruns.getJob.bind(reruns)),
    endEvidence: checkedFor(check, reruns.endEvidence.bind(reruns)),
    isOnlyActiveJob: checkedFor(check, reruns.isOnlyActiveJob.bind(reruns)),
    forceCancel: checkedFor(check, reruns.forceCancel.bind(reruns)),
    rerun: checkedFor(check, reruns.rerun.bind(reruns)),
    missingPermissions: reruns.missingPermissions.bind(reruns),
  };
}

/**
 * Returns the same call, with a check of its scope before.
 * @param check - throws if the credential may not be used for the scope
 */
function checkedFor<Rest extends unknown[], T>(
  check: (scope: Scope) => void,
  call: (scope: Scope, ...rest: Rest) => Promise<T>,
): (scope: Scope, ...rest: Rest) => Promise<T> {
  return async (scope, ...rest) => {
    check(scope);
    return await call(scope, ...rest);
  };
}
