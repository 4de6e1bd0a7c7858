import type { RegisterRequest, Scope } from '../../../core/domain/ciServer.ts';
import type { ScaleSet, ScaleSetRequest } from '../../../core/domain/scaleSet.ts';
import type { ScaleSets, ScaleSetSession } from '../../ports/scaleSets.ts';
import { GitHubScaleSetSession, openSession, refreshSession } from './scaleSetSession.ts';
import type { Tenant, TenantRequest } from './tenant.ts';
import {
  agentListAnswer,
  scaleSetAnswer,
  scaleSetListAnswer,
  tenantJitAnswer,
  type ScaleSetAnswer,
} from './tenantResponses.ts';

const SCALE_SETS = '_apis/runtime/runnerscalesets';
const AGENTS = '_apis/distributedtask/pools/0/agents';

/** Finds the numeric ID of a runner group. */
type ResolveGroup = (
  scope: Scope,
  group: RegisterRequest['group'],
  signal?: AbortSignal,
) => Promise<number>;

/** Runner that was registered in a scale set. */
export interface ScaleSetRunner {
  readonly id: string;
  readonly name: string;
  readonly jitConfig: string;
}

/** Scale sets of GitHub with one credential. */
export class GitHubScaleSets implements ScaleSets {
  readonly #tenant: Tenant;
  readonly #groupId: ResolveGroup;
  /**
   * IDs by scope, group and name, for registrations. A scale set that was removed and created again
   * has another ID.
   */
  readonly #ids = new Map<string, number>();

  constructor(tenant: Tenant, groupId: ResolveGroup) {
    this.#tenant = tenant;
    this.#groupId = groupId;
  }

  async find(wanted: ScaleSetRequest, signal?: AbortSignal): Promise<ScaleSet | undefined> {
    const { scope, name, group, mark, adopt = false } = wanted;
    const groupId = await this.#groupId(scope, group, signal);
    const found = await this.#find(scope, groupId, name, signal);
    if (found === undefined) return undefined;
    if (!isMarked(found, mark) && !adopt) throw this.#foreign(scope, found);
    return this.#known(found, groupId, wanted);
  }

  async ensure(wanted: ScaleSetRequest, signal?: AbortSignal): Promise<ScaleSet> {
    const found = await this.find(wanted, signal);
    if (found !== undefined) return found;
    const { scope, name, group, mark, adopt = false } = wanted;
    const groupId = await this.#groupId(scope, group, signal);
    const created = await this.#create(scope, { name, groupId, labels: labelsOf(wanted) }, signal);
    if (!isMarked(created, mark) && !adopt) {
      await this.#delete(scope, created, signal);
      throw this.#unmarkable(scope, created);
    }
    return this.#known(created, groupId, wanted);
  }

  async relabel(
    scaleSet: ScaleSet,
    wanted: ScaleSetRequest,
    signal?: AbortSignal,
  ): Promise<ScaleSet> {
    const { scope, name, group, mark, adopt = false } = wanted;
    const labels = labelsOf(wanted);
    if (sameLabels(scaleSet.labels, labels)) return scaleSet;
    const groupId = await this.#groupId(scope, group, signal);
    const changed = await this.#update(scope, scaleSet, { name, groupId, labels }, signal);
    if (!isMarked(changed, mark) && !adopt) throw this.#unmarkable(scope, changed);
    return this.#known(changed, groupId, wanted);
  }

  /** Returns the scale set that the server has answered, and remembers its ID. */
  #known(answer: ScaleSetAnswer, groupId: number, wanted: ScaleSetRequest): ScaleSet {
    const { id, name } = answer;
    this.#ids.set(keyOf(wanted.scope, groupId, wanted.name), id);
    const labels = namesOf(answer);
    const droppedLabels = labelsOf(wanted).filter(
      (label) => !labels.some((each) => same(each, label)),
    );
    return { id, name, labels, droppedLabels };
  }

  async remove(
    { scope, name, group, mark, adopt = false }: Omit<ScaleSetRequest, 'labels'>,
    signal?: AbortSignal,
  ): Promise<'removed' | 'absent'> {
    const groupId = await this.#groupId(scope, group, signal);
    const found = await this.#find(scope, groupId, name, signal);
    if (found === undefined || !(isMarked(found, mark) || adopt)) return 'absent';
    this.#ids.delete(keyOf(scope, groupId, name));
    return await this.#delete(scope, found, signal);
  }

  async openSession(
    scope: Scope,
    scaleSetId: number,
    owner: string,
    signal?: AbortSignal,
  ): Promise<ScaleSetSession> {
    const at = { tenant: this.#tenant, scope, scaleSetId };
    return new GitHubScaleSetSession(at, await openSession(at, owner, signal));
  }

  async adoptSession(
    scope: Scope,
    scaleSetId: number,
    sessionId: string,
    signal?: AbortSignal,
  ): Promise<ScaleSetSession> {
    const at = { tenant: this.#tenant, scope, scaleSetId };
    return new GitHubScaleSetSession(at, await refreshSession(at, sessionId, signal));
  }

  /**
   * Registers a runner of a scale set.
   * @throws CiServerError `name_taken`; `unavailable` if the scale set does not exist: the
   * listener of its set creates it
   */
  async register(
    { scope, name, group }: RegisterRequest,
    scaleSet: string,
    signal?: AbortSignal,
  ): Promise<ScaleSetRunner> {
    const groupId = await this.#groupId(scope, group, signal);
    const key = keyOf(scope, groupId, scaleSet);
    const id = this.#ids.get(key) ?? (await this.#find(scope, groupId, scaleSet, signal))?.id;
    const request = this.#request(
      'POST',
      scope,
      scaleSet,
      `/${id ?? 0}/generatejitconfig`,
      '/{id}/generatejitconfig',
      { name, workFolder: '_work' },
    );
    if (id === undefined) throw this.#gone(request);
    this.#ids.set(key, id);
    const answer = await this.#tenant.request(scope, request, signal);
    if (answer.status === 404) {
      this.#ids.delete(key);
      throw this.#gone(request);
    }
    const { runner, encodedJITConfig } = this.#tenant.parse(tenantJitAnswer, answer, request);
    return { id: String(runner.id), name: runner.name, jitConfig: encodedJITConfig };
  }

  /** Returns the ID of the runner with this name, or `undefined` if there is none. */
  async runnerId(scope: Scope, name: string, signal?: AbortSignal): Promise<string | undefined> {
    const request: TenantRequest = {
      method: 'GET',
      path: AGENTS,
      route: AGENTS,
      query: { agentName: name },
      subject: `${scope.kind} ${scope.name}, runner ${name}`,
    };
    const answer = await this.#tenant.request(scope, request, signal);
    const { value } = this.#tenant.parse(agentListAnswer, answer, request);
    const found = value.find((runner) => runner.name === name);
    return found === undefined ? undefined : String(found.id);
  }

  /**
   * Removes a runner of a scale set.
   * @throws CiServerError `busy` while it runs a job
   */
  async removeRunner(
    scope: Scope,
    runnerId: string,
    signal?: AbortSignal,
  ): Promise<'removed' | 'absent'> {
    const request: TenantRequest = {
      method: 'DELETE',
      path: `${AGENTS}/${runnerId}`,
      route: `${AGENTS}/{id}`,
      subject: `${scope.kind} ${scope.name}, runner ${runnerId}`,
    };
    const answer = await this.#tenant.request(scope, request, signal);
    return answer.status === 404 ? 'absent' : 'removed';
  }

  async #find(
    scope: Scope,
    groupId: number,
    name: string,
    signal?: AbortSignal,
  ): Promise<ScaleSetAnswer | undefined> {
    const request = {
      ...this.#request('GET', scope, name),
      query: { runnerGroupId: String(groupId), name },
    };
    const answer = await this.#tenant.request(scope, request, signal);
    const { value } = this.#tenant.parse(scaleSetListAnswer, answer, request);
    return value.find((set) => same(set.name, name));
  }

  async #delete(
    scope: Scope,
    { id, name }: ScaleSetAnswer,
    signal?: AbortSignal,
  ): Promise<'removed' | 'absent'> {
    const request = this.#request('DELETE', scope, name, `/${id}`, '/{id}');
    const answer = await this.#tenant.request(scope, request, signal);
    return answer.status === 404 ? 'absent' : 'removed';
  }

  async #create(
    scope: Scope,
    wanted: { name: string; groupId: number; labels: readonly string[] },
    signal?: AbortSignal,
  ): Promise<ScaleSetAnswer> {
    const request = this.#request('POST', scope, wanted.name, '', '', bodyOf(wanted));
    const answer = await this.#tenant.request(scope, request, signal);
    return this.#tenant.parse(scaleSetAnswer, answer, request);
  }

  async #update(
    scope: Scope,
    { id }: ScaleSet,
    wanted: { name: string; groupId: number; labels: readonly string[] },
    signal?: AbortSignal,
  ): Promise<ScaleSetAnswer> {
    const request = this.#request('PATCH', scope, wanted.name, `/${id}`, '/{id}', bodyOf(wanted));
    const answer = await this.#tenant.request(scope, request, signal);
    if (answer.status === 404) throw this.#gone(request);
    return this.#tenant.parse(scaleSetAnswer, answer, request);
  }

  #request(
    method: TenantRequest['method'],
    scope: Scope,
    name: string,
    path = '',
    route = path,
    body?: unknown,
  ): TenantRequest {
    return {
      method,
      path: `${SCALE_SETS}${path}`,
      route: `${SCALE_SETS}${route}`,
      subject: `${scope.kind} ${scope.name}, scale set ${name}`,
      ...(body === undefined ? {} : { body }),
    };
  }

  #gone(request: TenantRequest): Error {
    return this.#tenant.toError('unavailable', request, 'the scale set does not exist', 404);
  }

  #foreign(scope: Scope, { name, id }: ScaleSetAnswer): Error {
    return this.#tenant.toError(
      'name_taken',
      this.#request('GET', scope, name),
      `a scale set "${name}" (${id}) exists, and this installation did not create it: use another scaleSet.name, or take it over with scaleSet.adopt`,
    );
  }

  #unmarkable(scope: Scope, { name }: ScaleSetAnswer): Error {
    return this.#tenant.toError(
      'rejected',
      this.#request('POST', scope, name),
      `the server keeps one label for a scale set, so "${name}" cannot be marked as this installation's: set scaleSet.adopt if no other system uses this name`,
    );
  }
}

const bodyOf = (wanted: { name: string; groupId: number; labels: readonly string[] }): object => ({
  name: wanted.name,
  runnerGroupId: wanted.groupId,
  labels: wanted.labels.map((name) => ({ name, type: 'System' })),
  // The image determines the version of the runner.
  RunnerSetting: { disableUpdate: true },
});

/** Returns the labels of the request. A server that supports one label uses the name instead. */
const labelsOf = ({ name, labels, mark }: ScaleSetRequest): string[] => [
  ...(labels.length === 0 ? [name] : labels),
  mark,
];

const namesOf = ({ labels }: ScaleSetAnswer): string[] => (labels ?? []).map(({ name }) => name);
const same = (a: string, b: string): boolean => a.toLowerCase() === b.toLowerCase();
const isMarked = (set: ScaleSetAnswer, mark: string): boolean =>
  namesOf(set).some((label) => same(label, mark));
const sameLabels = (a: readonly string[], b: readonly string[]): boolean =>
  a.length === b.length && b.every((label) => a.some((each) => same(each, label)));
const keyOf = (scope: Scope, groupId: number, name: string): string =>
  `${scope.kind}:${scope.name}/${groupId}/${name}`.toLowerCase();
