import type { z } from 'zod';
import type {
  CiJobList,
  RegisterRequest,
  RunnerGroupRef,
  Scope,
} from '../../../core/domain/ciServer.ts';
import { DEFAULT_JOB_LIMITS, type CiServerTraits } from '../../../core/domain/ciServerTraits.ts';
import {
  GITEA_RUNNER_EPHEMERAL,
  GITEA_RUNNER_FILE,
} from '../../../core/domain/runnerKinds/gitea.ts';
import type { CiRunner, CiServer, Registration } from '../../ports/ciServer.ts';
// The REST API is GitHub's in form, so the client is the same.
import { RestApi } from '../github/api.ts';
import type { RestApiOptions, RestRequest } from '../github/restRequest.ts';
import type { RestCall } from '../github/classify.ts';
import { SharedSearch } from '../sharedSearch.ts';
import { SingleFlight } from '../singleFlight.ts';
import { giteaUrlOf } from './addresses.ts';
import { GiteaLists, type ReadList } from './lists.ts';
import { normalizeGiteaLabels } from './labels.ts';
import {
  type GiteaJob,
  type GiteaRunner,
  jobListAnswer,
  registerAnswer,
  registrationTokenAnswer,
  runnerAnswer,
  runnerListAnswer,
} from './responses.ts';
import { GiteaScopes, type ScopeRoute } from './scopes.ts';

/**
 * Time between the disabling of a runner and the look at its jobs (ms). A request for a job that
 * Gitea is handling meanwhile has read the runner as enabled, and is answered at once.
 */
const DISABLE_SETTLE_MS = 1_000;

/**
 * Capabilities of Gitea. It would remove a busy runner, and leave its job without one. The adapter
 * refuses instead.
 */
export const GITEA_TRAITS: CiServerTraits = {
  refusesBusyRemoval: true,
  canDisable: false,
  singleUseRegistration: true,
  runnerOutlivesRegistration: true,
  jobLimits: DEFAULT_JOB_LIMITS,
};

/** Client of a Gitea server with one credential. */
export class GiteaCiServer implements CiServer {
  readonly kind = 'gitea';
  readonly traits = GITEA_TRAITS;
  readonly #api: RestApi;
  readonly #options: RestApiOptions;
  readonly #webUrl: string;
  readonly #lists: GiteaLists;
  readonly #scopes: GiteaScopes;
  readonly #runnerLists = new SharedCalls<ReadList<GiteaRunner>>();
  readonly #runningJobs = new SharedCalls<ReadList<GiteaJob>>();
  readonly #queuedJobs: SharedSearch;

  constructor(options: RestApiOptions) {
    this.#options = options;
    this.#api = new RestApi(options);
    this.#webUrl = options.credential.webUrl ?? giteaUrlOf(options.credential.apiUrl);
    this.#lists = new GiteaLists(this.#api);
    this.#scopes = new GiteaScopes(this.#api);
    this.#queuedJobs = new SharedSearch(
      options.clock,
      async (scope) => await this.#searchJobs(scope),
    );
  }

  isReachable(): boolean {
    return this.#api.isReachable();
  }

  accessError(
    _scope: Scope,
    _group?: RunnerGroupRef,
    { labels = [] }: Partial<Pick<RegisterRequest, 'labels'>> = {},
  ): string | undefined {
    // The runner would read the rest as the way to run the job.
    const label = labels.find((each) => each.includes(':'));
    return label && `labels: a label of Gitea must not contain ":", got "${label}"; rename it`;
  }

  /** Registers the runner itself, so that no registration token gets into a pod. */
  async register(wanted: RegisterRequest, signal?: AbortSignal): Promise<Registration> {
    const { scope, name, labels, ephemeral } = wanted;
    signal?.throwIfAborted();
    const request = await this.#request('registration_token', 'POST', scope, '/registration-token');
    const refusal = this.accessError(scope, undefined, { labels });
    if (refusal !== undefined) throw this.#api.toError('rejected', request, refusal);
    // Gitea permits several runners of one name. A second one would hide a registration that an
    // earlier attempt has lost.
    // A list that changes while it is read may lack that one. It is left to the sweep then: on a busy
    // server nothing could be registered otherwise.
    const { items: known } = await this.#freshRunners(scope, signal);
    if (known.some((runner) => runner.name === name))
      throw this.#api.toError('name_taken', request, `a runner with the name ${name} exists`);
    const { token } = await this.#ask(registrationTokenAnswer, request, signal);
    const { runner } = await this.#ask(
      registerAnswer,
      {
        call: 'registration_token',
        route: `POST ${giteaUrlOf(this.#options.credential.apiUrl)}/api/actions/runner.v1.RunnerService/Register`,
        parameters: { name, token, labels, ephemeral },
        subject: `${request.subject}, runner ${name}`,
      },
      signal,
    );
    const file = {
      id: Number(runner.id),
      uuid: runner.uuid,
      name,
      token: runner.token,
      address: this.#webUrl,
      // Jobs run in the runner's own container.
      labels: labels.map((label) => `${label}:host`),
      ephemeral,
    };
    return {
      runnerName: name,
      runnerId: runner.id,
      env: {
        [GITEA_RUNNER_FILE]: JSON.stringify(file),
        [GITEA_RUNNER_EPHEMERAL]: String(ephemeral),
      },
    };
  }

  async findRunner(
    scope: Scope,
    { id, name }: { id?: string; name: string },
    signal?: AbortSignal,
  ): Promise<CiRunner | undefined> {
    const runner =
      id === undefined
        ? await this.#findByName(scope, name, signal)
        : await this.#findById(scope, id, signal);
    if (runner === undefined) return undefined;
    return toCiRunner(runner, await this.#busyRunners(scope, signal));
  }

  async listRunners(scope: Scope, signal?: AbortSignal): Promise<CiRunner[]> {
    const request = await this.#request('list', 'GET', scope, '');
    const runners = this.#lists.allOf(await this.#freshRunners(scope, signal), request);
    const busy = runners.length === 0 ? new Set<string>() : await this.#busyRunners(scope, signal);
    return runners.map((runner) => toCiRunner(runner, busy));
  }

  /**
   * Removes a runner that has no job. The runner is disabled first, so that it gets none meanwhile.
   * One that is busy stays disabled: it ends its job and takes no other.
   */
  async removeRegistration(
    scope: Scope,
    runnerId: string,
    signal?: AbortSignal,
  ): Promise<'removed' | 'absent'> {
    const runner = await this.#findById(scope, runnerId, signal);
    if (runner === undefined) return 'absent';
    if (!runner.disabled && !(await this.#disable(scope, runner, signal))) return 'absent';
    const request = await this.#request('remove', 'DELETE', scope, '/{runner_id}', {
      runner_id: runnerId,
    });
    if ((await this.#busyRunners(scope, signal)).has(runnerId))
      throw this.#api.toError('busy', request, `runner ${runner.name} is running a job`);
    const { status } = await this.#api.request(request, signal);
    if (status === 204) return 'removed';
    if (status === 404 && (await this.#findById(scope, runnerId, signal)) === undefined)
      return 'absent';
    throw this.#api.toError('unavailable', request, 'a removal must be answered 204', status);
  }

  /** Concurrent calls for a scope share one list, which is not aborted for one of them. */
  async listQueuedJobs(
    scope: Scope,
    labels?: readonly string[],
    signal?: AbortSignal,
    maxAgeMs = 0,
  ): Promise<CiJobList> {
    const offered = labels && new Set(normalizeGiteaLabels(labels));
    return await this.#queuedJobs.list(scope, { offered, maxAgeMs }, signal);
  }

  /** Closes the connections. */
  async close(): Promise<void> {
    await this.#api.close();
  }

  /** @returns whether the runner still exists */
  async #disable(
    scope: Scope,
    { id, status }: GiteaRunner,
    signal?: AbortSignal,
  ): Promise<boolean> {
    const request = await this.#request('remove', 'PATCH', scope, '/{runner_id}', {
      runner_id: id,
      disabled: true,
    });
    const answer = await this.#api.request(request, signal);
    if (answer.status === 404) return (await this.#findById(scope, id, signal)) !== undefined;
    if (status === 'online') await this.#options.clock.sleep(DISABLE_SETTLE_MS, signal);
    return true;
  }

  /**
   * Returns a runner.
   * @returns `undefined` if it does not exist, which the credential must be able to see
   */
  async #findByName(
    scope: Scope,
    name: string,
    signal?: AbortSignal,
  ): Promise<GiteaRunner | undefined> {
    const list = await this.#freshRunners(scope, signal);
    const found = list.items.findLast((runner) => runner.name === name);
    if (found !== undefined) return found;
    const request = await this.#request('list', 'GET', scope, '');
    return this.#lists.allOf(list, request).find((runner) => runner.name === name);
  }

  async #findById(
    scope: Scope,
    id: string,
    signal?: AbortSignal,
  ): Promise<GiteaRunner | undefined> {
    const request = await this.#request('runner', 'GET', scope, '/{runner_id}', { runner_id: id });
    if (!/^[1-9]\d*$/.test(id))
      throw this.#api.toError('rejected', request, `runner id: must be a number, got "${id}"`);
    const answer = await this.#api.request(request, signal);
    if (answer.status !== 404) return this.#api.parse(runnerAnswer, answer, request);
    const look = await this.#request('list', 'GET', scope, '', { limit: 1 });
    await this.#ask(runnerListAnswer, look, signal);
    const again = await this.#api.request(request, signal);
    return again.status === 404 ? undefined : this.#api.parse(runnerAnswer, again, request);
  }

  /** Returns the runners of a scope, oldest first. Concurrent calls share one list. */
  async #freshRunners(scope: Scope, signal?: AbortSignal): Promise<ReadList<GiteaRunner>> {
    signal?.throwIfAborted();
    const list = this.#runnerLists.of(keyOf(scope), async () => {
      const request = await this.#request('list', 'GET', scope, '');
      const { items, complete } = await this.#lists.seen(runnerListAnswer, request);
      return { items: items.toSorted((a, b) => Number(a.id) - Number(b.id)), complete };
    });
    return await list.runFresh(signal);
  }

  /**
   * Returns the IDs of the runners that are running a job. Concurrent calls share one list that
   * begins after each of them. A job counts if any of three reads of a list that changes has it.
   */
  async #busyRunners(scope: Scope, signal?: AbortSignal): Promise<Set<string>> {
    signal?.throwIfAborted();
    const list = this.#runningJobs.of(
      keyOf(scope),
      async () =>
        await this.#lists.seen(jobListAnswer, await this.#jobsRequest(scope, 'status=in_progress')),
    );
    const { items } = await list.runFresh(signal);
    return new Set(items.flatMap(({ runnerId }) => runnerId ?? []));
  }

  async #searchJobs(scope: Scope): Promise<CiJobList> {
    const request = await this.#jobsRequest(scope, 'status=queued&status=in_progress');
    const { items, complete } = await this.#lists.read(jobListAnswer, request);
    return { jobs: items.map(({ runnerId: _runner, ...job }) => job), complete };
  }

  async #jobsRequest(scope: Scope, query: string): Promise<RestRequest> {
    const at = await this.#scopes.route(scope);
    return { ...toRequest('jobs', at, {}), route: `GET ${at.prefix}/actions/jobs?${query}` };
  }

  async #ask<T extends z.ZodType>(
    schema: T,
    request: RestRequest,
    signal?: AbortSignal,
  ): Promise<z.output<T>> {
    return this.#api.parse(schema, await this.#api.request(request, signal), request);
  }

  async #request(
    call: RestCall,
    method: string,
    scope: Scope,
    path: string,
    parameters: Record<string, unknown> = {},
  ): Promise<RestRequest> {
    const at = await this.#scopes.route(scope);
    return {
      ...toRequest(call, at, parameters),
      route: `${method} ${at.prefix}/actions/runners${path}`,
    };
  }
}

/** One call for each key, shared between concurrent callers. */
class SharedCalls<T> {
  readonly #calls = new Map<string, SingleFlight<T>>();

  of(key: string, call: () => Promise<T>): SingleFlight<T> {
    const shared = this.#calls.get(key) ?? new SingleFlight(call);
    this.#calls.set(key, shared);
    return shared;
  }
}

const keyOf = ({ kind, name }: Scope): string => `${kind}:${name}`;

const toRequest = (
  call: RestCall,
  { subject, parameters }: ScopeRoute,
  more: Record<string, unknown>,
): Omit<RestRequest, 'route'> => ({ call, subject, parameters: { ...parameters, ...more } });

const toCiRunner = (
  { id, name, status, labels }: GiteaRunner,
  busy: ReadonlySet<string>,
): CiRunner => ({
  id,
  name,
  online: status === 'online',
  busy: busy.has(id),
  labels: (labels ?? []).map((label) => label.name),
});
