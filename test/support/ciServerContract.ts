import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { CiServer, Registration } from '../../activities/ports/ciServer.ts';
import { normalizeLabels } from '../../activities/ciServers/normalizeLabels.ts';
import { ciServerError } from './ciServers.ts';
import type { CiJobList, RegisterRequest, Scope } from '../../core/domain/ciServer.ts';

/** A CI server for the contract tests of adapters, which control it and read its actual state. */
export interface CiServerFixture {
  readonly server: CiServer;
  /** Returns the names of registered runners from the CI server itself, not through the adapter. */
  registered(scope: Scope): Promise<string[]>;
  /**
   * Starts a runner with the adapter's data. Resolves with its id when the CI server shows it as
   * online.
   */
  startRunner(request: RegisterRequest, registration: Registration): Promise<string>;
  /** Assigns a job to the runner with this label. Resolves when it runs. */
  startJob(
    scope: Scope,
    label: string,
  ): Promise<{ running(): Promise<boolean>; finish(): Promise<void> }>;
  /** Queues a job that no existing runner can take. Called only if `jobs`. */
  queueJob?(scope: Scope, labels: string[]): Promise<{ id: string; cancel(): Promise<void> }>;
  /** Hides all scopes from the credential. */
  loseScopes(): Promise<void>;
  /** Removes the credential's write permission. */
  loseWrite(): Promise<void>;
  /** Makes the credential invalid. Called only if `revocable`. */
  revoke(): Promise<void>;
  /** Rejects requests from now on, because of one of the `limits`. */
  limit(title: string): Promise<void>;
  /** Fails requests from now on: with 502, or without a response. */
  fail(how: 'status' | 'drop'): Promise<void>;
  /** Requests that the CI server's API has received so far. */
  requestCount(): Promise<number>;
  close(): Promise<void>;
}

export interface ContractOptions {
  readonly scopes: readonly Scope[];
  readonly modes: readonly RegisterRequest['mode'][];
  /** Rate limits of the server, by title. */
  readonly limits: readonly string[];
  readonly revocable: boolean;
  /** Whether names are unique at the server, so that a second registration of a name is rejected. */
  readonly uniqueNames: boolean;
  /**
   * Whether labels are compared case-sensitively, and no runner has a label of its own. @default
   * false
   */
  readonly exactLabels?: boolean;
  /** Whether the adapter lists jobs. @default false */
  readonly jobs?: boolean;
}

/**
 * The contract of CI server adapters.
 * @param start - called before each test, without registrations and queued jobs
 */
export function ciServerContract(
  title: string,
  options: ContractOptions,
  start: () => Promise<CiServerFixture>,
): void {
  describe(`CI server contract: ${title}`, () => {
    let fixture: CiServerFixture;
    let server: CiServer;
    const scope = options.scopes[0] as Scope;

    beforeEach(async () => {
      fixture = await start();
      server = fixture.server;
    });
    afterEach(() => fixture.close());

    const request = (more: Partial<RegisterRequest> = {}): RegisterRequest => ({
      scope,
      name: 'r-1',
      labels: ['self-hosted', 'contract'],
      mode: options.modes[0] as RegisterRequest['mode'],
      group: 'default',
      ephemeral: true,
      ...more,
    });

    /** A registered, online runner. */
    async function online(
      more: Partial<RegisterRequest> = {},
    ): Promise<{ id: string; name: string; scope: Scope }> {
      const wanted = request(more);
      const id = await fixture.startRunner(wanted, await server.register(wanted));
      return { id, name: wanted.name, scope: wanted.scope };
    }

    test('its traits match its features', () => {
      const { traits } = server;
      expect({
        canDisable: server.disable !== undefined,
        groups: server.runnerGroupId !== undefined,
        singleUseRegistration: options.modes.includes('jit'),
      }).toEqual({
        canDisable: traits.canDisable,
        groups: traits.groups !== undefined,
        singleUseRegistration: traits.singleUseRegistration,
      });
    });

    describe.each(options.scopes)('in $kind $name', (at) => {
      test.each(options.modes)(
        '%s: a runner comes online, is found by name and by id, removed, then absent',
        async (mode) => {
          const runner = await online({ scope: at, mode });
          const found = await server.findRunner(at, { name: runner.name });
          expect(found).toMatchObject({ id: runner.id, name: 'r-1', online: true, busy: false });
          expect(found?.labels).toEqual(expect.arrayContaining(['contract']));
          expect(await server.findRunner(at, runner)).toEqual(found);
          expect(await server.listRunners(at)).toEqual([found]);
          expect(await fixture.registered(at)).toEqual(['r-1']);
          expect(await server.removeRegistration(at, runner.id)).toBe('removed');
          expect(await fixture.registered(at)).toEqual([]);
          expect(await server.removeRegistration(at, runner.id)).toBe('absent');
          expect(await server.findRunner(at, runner)).toBeUndefined();
          expect(await server.listRunners(at)).toEqual([]);
          expect(await server.findRunner(at, { name: runner.name })).toBeUndefined();
        },
      );
    });

    (options.jobs === true ? describe : describe.skip).each(
      options.scopes.filter(({ kind }) => kind !== 'enterprise'),
    )('jobs of $kind $name', (at) => {
      const queuedJobs = async (labels?: string[]): Promise<CiJobList | undefined> =>
        await server.listQueuedJobs?.(at, labels);

      test('queued ones are listed while they are queued', async () => {
        expect(await queuedJobs()).toEqual({ jobs: [], complete: true });
        const before = Math.floor(Date.now() / 1_000) * 1_000;
        const job = await fixture.queueJob?.(at, ['self-hosted', 'Nobody']);
        const found = await queuedJobs();
        expect(found).toEqual({
          jobs: [
            {
              id: job?.id,
              runAttempt: 1,
              runId: expect.stringMatching(/^\d+$/),
              repository: expect.stringMatching(/^[a-z]+\/[a-z]+$/),
              labels: normalizeLabels(server.kind, ['self-hosted', 'Nobody']),
              status: 'queued',
              queuedAt: expect.any(Number),
            },
          ],
          complete: true,
        });
        expect(found?.jobs[0]?.queuedAt).toBeGreaterThanOrEqual(before);
        await job?.cancel();
        expect(await queuedJobs()).toEqual({ jobs: [], complete: true });
      });

      test('a running one is listed with its runner until it has ended', async () => {
        await online({ scope: at });
        const job = await fixture.startJob(at, 'contract');
        expect(await queuedJobs()).toMatchObject({
          jobs: [{ status: 'in_progress', runnerName: 'r-1', startedAt: expect.any(Number) }],
          complete: true,
        });
        await job.finish();
        expect(await queuedJobs()).toEqual({ jobs: [], complete: true });
      });

      test('with labels, only those that a runner with them can take are listed', async () => {
        const job = await fixture.queueJob?.(at, ['self-hosted', 'Nobody', 'has-these']);
        const ids = async (...labels: string[]): Promise<unknown> =>
          (await queuedJobs(labels))?.jobs.map(({ id }) => id);
        const own = options.exactLabels === true ? ['self-hosted', 'Nobody'] : ['nobody'];
        const other = options.exactLabels === true ? 'has-these' : 'HAS-THESE';
        expect(await ids(...own, other, 'and-more')).toEqual([job?.id]);
        expect(await ids(...own)).toEqual([]);
        expect(await ids('NOBODY', 'has-these', 'self-hosted')).toEqual(
          options.exactLabels === true ? [] : [job?.id],
        );
      });
    });

    test('a name that is the prefix of another is distinguished from it', async () => {
      await online({ name: 'r-10' });
      expect(await server.findRunner(scope, { name: 'r-1' })).toBeUndefined();
    });

    test('a busy runner is shown as busy, not removed, and its job continues', async () => {
      const runner = await online();
      const job = await fixture.startJob(scope, 'contract');
      expect(await server.findRunner(scope, runner)).toMatchObject({ busy: true });
      for (let again = 0; again < 3; again++)
        expect(await ciServerError(server.removeRegistration(scope, runner.id))).toMatchObject({
          kind: 'busy',
        });
      expect(await job.running()).toBe(true);
      expect(await fixture.registered(scope)).toEqual(['r-1']);
      await job.finish();
    });

    if (options.modes.includes('token'))
      test('a static runner stays registered after its job, and can be removed then', async () => {
        const runner = await online({ mode: 'token', ephemeral: false });
        const job = await fixture.startJob(scope, 'contract');
        expect(await ciServerError(server.removeRegistration(scope, runner.id))).toMatchObject({
          kind: 'busy',
        });
        await job.finish();
        expect(await fixture.registered(scope)).toEqual(['r-1']);
        expect(await server.removeRegistration(scope, runner.id)).toBe('removed');
      });

    if (options.uniqueNames && options.modes.includes('jit'))
      test('a name in use is rejected', async () => {
        await server.register(request({ mode: 'jit' }));
        expect(await ciServerError(server.register(request({ mode: 'jit' })))).toMatchObject({
          kind: 'name_taken',
        });
        expect(await fixture.registered(scope)).toEqual(['r-1']);
      });

    const refusals = [
      'lost its scopes',
      'may only look',
      ...(options.revocable ? ['is revoked'] : []),
    ];

    test.each(refusals)('a credential that %s is no evidence about any runner', async (how) => {
      const runner = await online();
      const gone = await online({ name: 'gone' });
      await server.removeRegistration(scope, gone.id);
      const calls: (() => Promise<unknown>)[] = [
        () => server.removeRegistration(scope, runner.id),
        () => server.register(request({ name: 'r-2' })),
      ];
      if (how === 'may only look') await fixture.loseWrite();
      else {
        await (how === 'is revoked' ? fixture.revoke() : fixture.loseScopes());
        if (server.listQueuedJobs) calls.push(async () => await server.listQueuedJobs?.(scope));
        calls.push(
          () => server.removeRegistration(scope, gone.id),
          () => server.findRunner(scope, runner),
          () => server.findRunner(scope, { name: 'never-was' }),
        );
      }
      for (const call of calls)
        expect(await ciServerError(call())).toMatchObject({ kind: 'credentials' });
      expect(await fixture.registered(scope)).toEqual(['r-1']);
    });

    // jest rejects an empty table.
    if (options.limits.length > 0)
      test.each(options.limits)(
        '%s: neither gone nor forbidden, with a time to wait, and nobody asks again before',
        async (limit) => {
          const runner = await online();
          await fixture.limit(limit);
          const before = await fixture.requestCount();
          const calls = [
            () => server.removeRegistration(scope, runner.id),
            () => server.findRunner(scope, runner),
            () => server.findRunner(scope, { name: 'never-was' }),
            () => server.register(request({ name: 'r-2' })),
            () => server.removeRegistration(scope, '999999'),
            ...(server.listQueuedJobs ? [async () => await server.listQueuedJobs?.(scope)] : []),
          ];
          for (const call of calls) {
            const error = await ciServerError(call());
            expect(error.kind).toBe('rate_limited');
            expect(error.retryAfterMs).toBeGreaterThan(0);
          }
          expect((await fixture.requestCount()) - before).toBe(1);
          expect(await fixture.registered(scope)).toEqual(['r-1']);
        },
      );

    test.each(['status', 'drop'] as const)('failing requests (%s) are unavailable', async (how) => {
      const runner = await online();
      await fixture.fail(how);
      const calls: (() => Promise<unknown>)[] = [
        () => server.removeRegistration(scope, runner.id),
        () => server.findRunner(scope, runner),
        () => server.findRunner(scope, { name: 'never-was' }),
        () => server.register(request({ name: 'r-2' })),
      ];
      for (const call of calls)
        expect(await ciServerError(call())).toMatchObject({ kind: 'unavailable' });
    });

    test('an aborted signal ends a request with its reason', async () => {
      const signal = AbortSignal.abort(new Error('cancelled'));
      await expect(server.findRunner(scope, { name: 'r-1' }, signal)).rejects.toThrow('cancelled');
      await expect(server.removeRegistration(scope, '1', signal)).rejects.toThrow('cancelled');
      await expect(server.register(request(), signal)).rejects.toThrow('cancelled');
    });
  });
}
