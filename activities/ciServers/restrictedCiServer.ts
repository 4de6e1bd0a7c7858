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

type Restrictions = Pick<Credential, 'scopes' | 'groups' | 'labels'>;

/**
 * Returns the same server, restricted to the `scopes`, `groups` and `labels` of the credential. The
 * restrictions are checked at admission, where the user sees the error. They are checked again in
 * every call, because anyone who can write to the Temporal namespace can run activities with any
 * input.
 */
export function restrictCiServer(
  server: CiServer,
  name: string,
  restrictions: Restrictions,
): CiServer {
  const { scopes, groups, labels } = restrictions;
  if (scopes === undefined && groups === undefined && labels === undefined) return server;
  const restricted = new CredentialCheck(server, name, restrictions);
  const check = (scope: Scope): void => restricted.check(scope);
  return {
    kind: server.kind,
    traits: server.traits,
    accessError: (scope, group, runner) => restricted.accessError(scope, group, runner),
    ...(server.isReachable && { isReachable: () => server.isReachable?.() !== false }),
    ...(server.redeliverFailed && {
      redeliverFailed: async (limits, signal) =>
        (await server.redeliverFailed?.(limits, signal)) ?? { redelivered: 0, postponed: 0 },
    }),
    ...restrictOptionalCalls(server, check),
    ...(server.scaleSets && {
      scaleSets: restrictScaleSets(
        server.scaleSets,
        check,
        async (request, signal) => await restricted.scaleSetWithGroupId(request, signal),
      ),
    }),
    ...(server.reruns && { reruns: restrictReruns(server.reruns, check) }),
    register: async (request, signal) =>
      await server.register(await restricted.withGroupId(request, signal), signal),
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

/** Checks requests against the restrictions of a credential. */
class CredentialCheck {
  readonly #server: CiServer;
  readonly #name: string;
  readonly #restrictions: Restrictions;
  readonly #covered: ReadonlySet<string> | undefined;

  constructor(server: CiServer, name: string, restrictions: Restrictions) {
    const { scopes } = restrictions;
    this.#server = server;
    this.#name = name;
    this.#restrictions = restrictions;
    this.#covered = scopes && new Set(scopes.map((scope) => scope.toLowerCase()));
  }

  /** Returns why the credential may not be used like this, if so. */
  accessError(
    ...[scope, group, runner = {}]: Parameters<NonNullable<CiServer['accessError']>>
  ): string | undefined {
    const refused = this.#server.accessError?.(scope, group, runner);
    if (refused !== undefined) return refused;
    const covered = this.#covered;
    if (covered !== undefined && !scopeKeys(scope).some((key) => covered.has(key))) {
      return `credential "${this.#name}" is not for ${scopeKeys(scope).at(-1)}: the worker's config has it for ${this.#restrictions.scopes?.join(', ')}`;
    }
    const id = group && this.#knownGroupId(group);
    return (id === undefined ? undefined : this.#refusesGroup(id)) ?? this.#refusesRunner(runner);
  }

  /** @throws CiServerError `rejected` if the credential may not be used for the scope */
  check(scope: Scope): void {
    refuse(this.accessError(scope));
  }

  /** Replaces the group by its ID, because a name may be given to another group. */
  async withGroupId(request: RegisterRequest, signal?: AbortSignal): Promise<RegisterRequest> {
    const { scope, group } = request;
    this.check(scope);
    refuse(this.#refusesRunner(request));
    if (this.#restrictions.groups === undefined) return request;
    const groupName = group !== 'default' && 'name' in group ? group.name : undefined;
    const id =
      groupName === undefined
        ? this.#knownGroupId(group)
        : await this.#server.runnerGroupId?.(scope, groupName, signal);
    if (id === undefined)
      throw new CiServerError(
        'rejected',
        `credential "${this.#name}" is for some runner groups only, and this CI server has none: remove groups`,
      );
    refuse(this.#refusesGroup(id, groupName));
    return { ...request, group: { id } };
  }

  /** Does the same for a scale set. */
  async scaleSetWithGroupId(
    request: ScaleSetRequest,
    signal?: AbortSignal,
  ): Promise<ScaleSetRequest> {
    // A server that supports one label gives jobs the name of the scale set as label.
    const labels = [...request.labels, request.name];
    const { group } = await this.withGroupId(
      { ...request, labels, ephemeral: true, mode: 'jit' },
      signal,
    );
    return { ...request, group };
  }

  #refusesRunner({
    labels: asked = [],
    mode,
  }: Partial<Pick<RegisterRequest, 'labels' | 'mode'>>): string | undefined {
    // A registration token is valid for the whole scope, regardless of the requested group, and the
    // command of the runner can read it.
    if (this.#restrictions.groups !== undefined && mode === 'token')
      return `credential "${this.#name}" is for some runner groups only, which the registration token of a static runner is not bound to: use ephemeral runners, or a credential without groups`;
    const foreign = asked.find((label) => !this.#isAllowedLabel(label));
    return foreign === undefined
      ? undefined
      : `credential "${this.#name}" is not for the label "${foreign}": the worker's config has it for ${this.#restrictions.labels?.join(', ')}`;
  }

  #isAllowedLabel(label: string): boolean {
    const { labels } = this.#restrictions;
    return (
      labels === undefined ||
      label.toLowerCase() === SELF_HOSTED ||
      isLocationLabel(label) ||
      labels.some((pattern) => matchesPattern(pattern.toLowerCase(), label.toLowerCase()))
    );
  }

  /**
   * Returns the ID of a group, or `undefined` for a group that is given by name, whose ID only the
   * server knows.
   */
  #knownGroupId(group: RunnerGroupRef): string | undefined {
    if (group === 'default') return this.#server.traits.groups?.defaultId;
    return 'id' in group ? group.id : undefined;
  }

  #refusesGroup(id: string, groupName?: string): string | undefined {
    const { groups } = this.#restrictions;
    if (groups?.includes(id) !== false) return undefined;
    return `credential "${this.#name}" is not for runner group ${groupName === undefined ? id : `"${groupName}" (${id})`}: the worker's config has it for ${groups.join(', ')}`;
  }
}

function refuse(reason: string | undefined): void {
  if (reason !== undefined) throw new CiServerError('rejected', reason);
}

/** Restricts the calls for one scope that a server may support. */
function restrictOptionalCalls(
  server: CiServer,
  check: (scope: Scope) => void,
): Pick<CiServer, 'publicGroups' | 'disable' | 'listQueuedJobs' | 'versionDeadline' | 'getJob'> {
  return {
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
