import { randomUUID } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { Output } from '../../cli/shared/output.ts';
import { Session } from '../../cli/shared/session.ts';
import { admitSets } from '../../cli/set/setAdmission.ts';
import { applySets } from '../../cli/set/setApply.ts';
import { readSetDocuments } from '../../cli/set/setDocuments.ts';
import {
  SET_ROUTING_MEMO,
  setDeclarationQuery,
  setCommandSignal,
  setWorkflowId,
  type RunnerSetInput,
  type RunnerSetStatus,
  type SetCommandResult,
} from '../../core/contract/index.ts';
import { CliProcess, recordingTerminal, runCli, type CliRun } from '../support/cli.ts';
import { FakeCiServer } from '../support/fakeCiServer.ts';
import { FakeCompute } from '../support/fakeCompute.ts';
import { holdfastWorld, type HoldfastWorld } from '../support/holdfastWorld.ts';
import { describeWithLab } from '../support/lab.ts';
import { SetRun, SHORT_SET_INTERVALS } from '../support/setRun.ts';
import { until, untilSeen } from '../support/until.ts';

await describeWithLab(
  'holdfast set, on a real Temporal server with the real workflows',
  { temporal: true },
  (lab) => {
    let compute: FakeCompute;
    let ci: FakeCiServer;
    let world: HoldfastWorld;
    let env: Record<string, string>;
    let folder: string;
    let name: string;
    let others: string[];

    beforeEach(async () => {
      compute = new FakeCompute();
      ci = new FakeCiServer();
      world = await holdfastWorld(lab.temporal?.address ?? '', { compute, ciServers: ci });
      env = { TEMPORAL_ADDRESS: lab.temporal?.address ?? '', HOLDFAST_TASK_QUEUE: world.taskQueue };
      folder = await mkdtemp(join(tmpdir(), 'hf-cli-set-'));
      name = `s${randomUUID().slice(0, 8)}`; // visibility is shared with other tests
      others = [];
    });
    afterEach(async () => {
      for (const each of [name, ...others])
        await world.client.workflow
          .getHandle(setWorkflowId(each))
          .terminate()
          .catch(() => undefined);
      await world.close();
      await rm(folder, { recursive: true });
    });

    const cli = async (...args: string[]): Promise<CliRun> => await runCli(['set', ...args], env);
    async function json<T = Record<string, unknown>>(...args: string[]): Promise<T> {
      const { status, stdout, stderr } = await cli(...args, '--json');
      if (status !== 0) throw new Error(`${args.join(' ')}: ${status}: ${stderr}${stdout}`);
      return JSON.parse(stdout) as T;
    }
    const setOf = (more: Partial<RunnerSetInput> = {}): RunnerSetInput => ({
      name,
      ...(more.replicas === undefined ? { minIdle: 1, max: 5 } : {}),
      intervals: SHORT_SET_INTERVALS,
      scaleDownDelay: '0s',
      queueCheck: '0s',
      ...more,
      template: SetRun.template({ labels: ['self-hosted', 'linux', 'X64'], ...more.template }),
    });
    const written = async (...sets: object[]): Promise<string> => {
      const path = join(folder, 'sets.yaml');
      await writeFile(path, sets.map((set) => JSON.stringify(set)).join('\n---\n'));
      return path;
    };
    const apply = async (...sets: object[]): Promise<CliRun> =>
      await cli('apply', '-f', await written(...sets));
    const run = (which = name): SetRun => SetRun.of({ world, compute, ci }, which);
    const other = (suffix: string): string => {
      others.push(`${name}-${suffix}`);
      return `${name}-${suffix}`;
    };
    const commands = async (): Promise<number> =>
      ((await run().handle.fetchHistory()).events ?? []).filter(
        (event) =>
          event.workflowExecutionSignaledEventAttributes?.signalName === setCommandSignal.name,
      ).length;

    test('apply: a dry run changes nothing; then sets are started, unchanged or changed', async () => {
      const second = other('b');
      const sets = [
        setOf(),
        setOf({
          name: second,
          replicas: 2,
          template: { ephemeral: false, repository: 'acme/app', organization: undefined } as never,
        }),
      ];
      const file = await written(...sets);
      const dry = await cli('apply', '-f', file, '--dry-run');
      expect(dry).toEqual({
        status: 0,
        stderr: '',
        stdout: `+ ${name}: new, 1 idle, at most 5, ephemeral runners for acme (self-hosted, linux, X64)\n+ ${second}: new, 2 runners, static runners for acme/app (self-hosted, linux, X64)\n`,
      });
      await expect(run().handle.describe()).rejects.toThrow(/not found/);

      const applied = await cli('apply', '-f', file);
      expect(applied).toMatchObject({ status: 0, stderr: '' });
      expect(applied.stdout.split('\n').slice(2)).toEqual([
        `${name}: started, 1 runner wanted now`,
        `${second}: started, 2 runners wanted now`,
        '',
      ]);
      await run().comesTo({ idle: 1 });
      const { memo, taskQueue, priority } = await run(second).handle.describe();
      expect(memo).toMatchObject({
        [SET_ROUTING_MEMO]: {
          labels: ['self-hosted', 'linux', 'X64'],
          scope: 'acme/app',
          scopeKind: 'repository',
        },
      });
      expect([taskQueue, priority?.priorityKey]).toEqual([world.taskQueue, 1]);

      expect(await cli('apply', '-f', file)).toEqual({
        status: 0,
        stderr: '',
        stdout: `= ${name}: unchanged\n= ${second}: unchanged\n${name}: unchanged\n${second}: unchanged\n`,
      });
      expect(await commands()).toBe(0);

      const changed = [
        setOf({ minIdle: 2, template: { env: { TOKEN: 'hush-hush' } } as never }),
        sets[1] as object,
      ];
      const planned = await json<{ dryRun: boolean; sets: object[] }>(
        'apply',
        '-f',
        await written(...changed),
        '--dry-run',
      );
      expect(planned).toEqual({
        dryRun: true,
        sets: [
          {
            name,
            id: `set-${name}`,
            action: 'change',
            rollout: true,
            changes: [
              { field: 'minIdle', from: 1, to: 2 },
              { field: 'template.env.TOKEN', to: '(not shown)', redacted: true },
            ],
          },
          { name: second, id: `set-${second}`, action: 'none', rollout: false, changes: [] },
        ],
      });
      expect(await commands()).toBe(0);
      const done = await apply(...changed);
      expect(done).toEqual({
        status: 0,
        // Its name, never its value.
        stderr: expect.stringMatching(/^warning: \S+: env: TOKEN [^\n]+\n$/) as unknown,
        stdout: `~ ${name}: changed, its runners are replaced because the template differs\n    ~ minIdle: 1 → 2\n    + template.env.TOKEN: (not shown)\n= ${second}: unchanged\n${name}: changed, 2 runners wanted now\n${second}: unchanged\n`,
      });
      expect(await commands()).toBe(1);
      expect(await run().handle.query(setDeclarationQuery)).toMatchObject({
        minIdle: 2,
        template: { env: { TOKEN: 'hush-hush' } },
      });
      const status = await run().comesTo({ idle: 2 });
      expect(new Set(status.runners.map(({ templateHash }) => templateHash))).toEqual(
        new Set([status.templateHash]),
      );
      expect((await json<{ set: RunnerSetStatus }>('get', name)).set.templateHash).toBe(
        status.templateHash,
      );
    });

    test('apply: a reader that closes the pipe changes neither what is applied nor the status', async () => {
      const second = other('b');
      const file = await written(setOf(), setOf({ name: second }));
      const command = new CliProcess(['set', 'apply', '-f', file], env);
      command.child.stdout?.destroy();
      expect(await command.exited).toEqual({ code: 0, signal: null });
      await run().comesTo({ idle: 1 });
      await run(second).comesTo({ idle: 1 });
    });

    test('apply: one invalid document prevents all changes', async () => {
      const refused = await apply(setOf(), { ...setOf({ name: other('bad') }), replicas: 1 });
      expect(refused).toMatchObject({
        status: 2,
        stdout: '',
        stderr: expect.stringMatching(
          /^error: 1 of 2 sets in .*\n {2}document 2 \(.*\), line 3: minIdle, max /,
        ),
      });
      await expect(run().handle.describe()).rejects.toThrow(/not found/);
    });

    test('apply: sets that the worker rejects, that are ending or that belong to others are reported, and the others applied', async () => {
      const [refused, ending, foreign, elsewhere, changed] = [
        other('refused'),
        other('ending'),
        other('foreign'),
        other('elsewhere'),
        other('changed'),
      ];
      await json(
        'apply',
        '-f',
        await written(setOf({ name: ending, replicas: 1 }), setOf({ name: changed })),
      );
      compute.onDelete = 'linger';
      const left = await run(ending).comesTo({ idle: 1 });
      run(ending).startJob(left.runners[0] ?? { workflowId: '' });
      await json('delete', ending);
      await world.client.workflow.start('runner', {
        workflowId: setWorkflowId(foreign),
        taskQueue: 'nobody',
      });
      await world.client.workflow.start('runnerSet', {
        workflowId: setWorkflowId(elsewhere),
        taskQueue: 'nobody',
        args: [setOf({ name: elsewhere })],
      });
      const sets = [
        setOf({ name: refused, template: { credential: 'unheard-of' } as never }),
        setOf({ name: ending, replicas: 2 }),
        setOf({ name: foreign }),
        setOf({ name: elsewhere }),
        setOf({ name: changed, template: { credential: 'unheard-of' } as never }),
        setOf(),
      ];
      const result = await apply(...sets);
      expect({ status: result.status, stderr: result.stderr }).toEqual({ status: 1, stderr: '' });
      const lines = result.stdout.split('\n');
      expect(lines).toEqual(
        expect.arrayContaining([
          `! ${ending}: set ${ending} is being deleted; apply again when it has ended ("holdfast set delete ${ending} --wait" waits for it)`,
          `! ${foreign}: set-${foreign} is not a set but a workflow of type runner`,
          `! ${elsewhere}: set ${elsewhere} runs on task queue nobody, not on ${world.taskQueue}; add --task-queue nobody, or give the set another name`,
          expect.stringMatching(
            new RegExp(
              `^${refused}: not applied: set ${refused} ended immediately: Invalid input: template\\.credential: unknown credential "unheard-of"`,
            ),
          ),
          expect.stringMatching(
            new RegExp(
              `^${changed}: not applied: set ${changed} rejected the command: Invalid input: template\\.credential: unknown credential`,
            ),
          ),
          `${name}: started, 1 runner wanted now`,
        ]),
      );
      expect(lines.filter((line) => line.includes(': not applied: '))).toHaveLength(5);
      expect((await run(changed).status()).templateHash).toBe((await run().status()).templateHash);
      // Asked of one alone, it is bad input.
      expect(await cli('scale', changed, '--min-idle', '9')).toMatchObject({
        status: 2,
        stderr: expect.stringMatching(
          /rejected the command: Invalid input: minIdle is more than max \(5\)\n$/,
        ),
      });
      expect(await cli('scale', ending, '--replicas', '2')).toMatchObject({
        status: 1,
        stderr: expect.stringContaining(
          'the set is being deleted and ends when its runners have ended',
        ),
      });
      // Deleting what is being deleted already is no mistake: this time it is waited for.
      const again = cli('delete', ending, '--wait');
      await until(
        'it to be told again',
        async () =>
          (
            await world.client.workflow.count(
              `WorkflowType = 'setCommand' AND WorkflowId STARTS_WITH 'set-command:${ending}:' AND ExecutionStatus = 'Completed'`,
            )
          ).count === 2,
      );
      run(ending).endJob(left.runners[0] ?? { workflowId: '' });
      expect(await again).toMatchObject({
        status: 0,
        stdout: `${ending}: ended: all its runners have ended\n`,
      });
    });

    test.each(['ended', 'started'] as const)(
      'apply: a set that was %s by somebody else between the look and the deed',
      async (what) => {
        const started = async (): Promise<unknown> =>
          await world.client.workflow.start('runnerSet', {
            workflowId: setWorkflowId(name),
            taskQueue: world.taskQueue,
            args: [setOf()],
          });
        if (what === 'ended') {
          await started();
          await run().reaches('its first answer', () => true);
        }
        const session = await Session.open({}, env);
        const terminal = recordingTerminal(env);
        let meanwhile: Promise<unknown> | undefined;
        // As soon as what would change is shown, somebody else is faster; whatever is asked after that waits for them.
        const racing: Session = Object.assign(Object.create(session) as Session, {
          attempt: async (fn: Parameters<Session['attempt']>[0], ms?: number): Promise<unknown> => {
            await meanwhile;
            return await session.attempt(fn, ms);
          },
        });
        const stdout = {
          ...terminal.stdout,
          write: (text: string) => {
            meanwhile ??= what === 'ended' ? run().handle.terminate() : started();
            terminal.stdout.write(text);
          },
        };
        const documents = admitSets(readSetDocuments(JSON.stringify(setOf({ max: 9 })), 'f'), 'f');
        expect(
          await applySets(racing, new Output({ ...terminal, stdout }, 'text'), documents, {
            dryRun: false,
          }),
        ).toBe(1);
        expect(terminal.written.stdout.split('\n').at(-2)).toBe(
          what === 'ended'
            ? `${name}: not applied: set ${name} ended in the meantime; apply again to start it`
            : `${name}: not applied: set ${name} was started in the meantime; apply again to see the changes`,
        );
        await session.close();
        // And so it is.
        expect(await apply(setOf({ max: 9 }))).toMatchObject({
          status: 0,
          stdout: expect.stringContaining(what === 'ended' ? `${name}: started` : '~ max: 5 → 9'),
        });
      },
    );

    test('a command that arrives with the first workflow task of a set is applied before its start', async () => {
      await world.suspend();
      await world.client.workflow.start('runnerSet', {
        workflowId: setWorkflowId(name),
        taskQueue: world.taskQueue,
        args: [setOf()],
      });
      const paused = json('pause', name, '--reason', 'too early');
      await world.resume();
      expect(await paused).toMatchObject({ name, blockedReason: 'paused: too early' });
    });

    test('scale, pause, resume and hold, until the next apply', async () => {
      await json('apply', '-f', await written(setOf()));
      await run().comesTo({ idle: 1 });
      expect((await cli('scale', name, '--min-idle', '3')).stdout).toBe(
        `${name}: 3 runners wanted now (at least 3 idle, at most 5)\n`,
      );
      const { runners } = await run().comesTo({ idle: 3 });
      const held = runners[0] ?? { workflowId: '', runnerName: '' };

      expect(await cli('hold', name, held.workflowId.replace('runner-', ''))).toMatchObject({
        status: 0,
        stdout: `${name}: ${held.workflowId} held; excluded from scale-downs and rollouts\n`,
      });
      expect(
        await json<SetCommandResult>('pause', name, '--reason', 'node\u001B[31m work'),
      ).toMatchObject({ blockedReason: 'paused: node[31m work', holds: [held.workflowId] });
      // A file that does not mention an operator's hand leaves it where it is.
      expect((await apply(setOf({ minIdle: 3 }))).stdout).toBe(
        `= ${name}: unchanged\n${name}: unchanged\n`,
      );
      expect((await apply(setOf({ minIdle: 3, max: 6 }))).stdout).toBe(
        `~ ${name}: changed\n    ~ max: 5 → 6\n${name}: changed, 3 runners wanted now\n`,
      );
      expect(await run().status()).toMatchObject({
        blockedReason: 'paused: node[31m work',
        holds: [held.workflowId],
      });
      expect((await cli('scale', name, '--min-idle', '0', '--max', '4')).stdout).toBe(
        `${name}: 0 runners wanted now (at least 0 idle, at most 4)\n`,
      );
      const shown = (await cli('get', name)).stdout;
      expect(shown).toMatch(/^Starts no runner: paused: node\[31m work$/m);
      expect(shown).toMatch(new RegExp(`^Holds: +${held.workflowId}$`, 'm'));
      expect(shown).toMatch(
        new RegExp(
          `^${held.workflowId} +idle +[0-9a-f]{10} +\\d+s +held +- +${held.runnerName}$`,
          'm',
        ),
      );
      // oxlint-disable-next-line no-control-regex -- that none is printed is the point
      expect(shown).not.toMatch(/[\u0000-\u0009\u000B-\u001F]/);

      expect((await cli('resume', name)).stdout).toBe(`${name}: resumed, 0 runners wanted now\n`);
      expect(
        (await run().settles({ idle: 1 })).runners.map(({ workflowId }) => workflowId),
      ).toEqual([held.workflowId]);
      expect(await cli('hold', name, 'nobody')).toEqual({
        status: 3,
        stdout: '',
        stderr: `error: set ${name} has no runner nobody; see "holdfast set get ${name}"\n`,
      });
      expect(await cli('hold', name, 'nobody', '--release')).toEqual({
        status: 3,
        stdout: '',
        stderr: `error: set ${name} does not hold nobody; held runners: ${held.workflowId}\n`,
      });
      expect((await cli('hold', name, held.runnerName ?? '', '--release')).stdout).toBe(
        `${name}: ${held.workflowId} released\n`,
      );
      await run().settles({});

      // A fixed number is another form of size; the file's is back with the next apply.
      expect(await json('scale', name, '--replicas', '2')).toMatchObject({
        desired: 2,
        min: 2,
        max: 2,
      });
      expect((await apply(setOf())).stdout).toBe(
        `~ ${name}: changed\n    + max: 5\n    + minIdle: 1\n    - replicas: 2\n${name}: changed, 1 runner wanted now\n`,
      );
    });

    test('scale during a schedule reports that it applies later', async () => {
      await json(
        'apply',
        '-f',
        await written(
          setOf({ schedules: [{ cron: '* * * * *', duration: '2h', minIdle: 0, max: 3 }] }),
        ),
      );
      const scaled = await cli('scale', name, '--min-idle', '2');
      expect(scaled).toMatchObject({
        status: 0,
        stdout: `${name}: 0 runners wanted now (at least 0 idle, at most 3)\n`,
        stderr: `${name}: a schedule is active; the new size takes effect when it ends\n`,
      });
      expect((await cli('get', name)).stdout).toMatch(
        /^Waits for: +schedule 1 \(\* \* \* \* \*\) holds until /m,
      );
    });

    test('delete: several need confirmation; jobs can complete; ended and unknown ones are status 3', async () => {
      await json('apply', '-f', await written(setOf({ replicas: 11 })));
      const { runners } = await run().comesTo({ idle: 11 });
      expect(await cli('delete', name)).toEqual({
        status: 2,
        stdout: '',
        stderr: `error: would drain 11 runners and delete the set ${name}; add --yes to do it\n`,
      });
      expect((await run().status()).deleting).toBeUndefined();

      const busy = runners[0] ?? { workflowId: '' };
      compute.onDelete = 'linger';
      run().startJob(busy);
      await run().reaches('a busy runner', ({ runners: now }) =>
        now.some(({ state }) => state === 'busy'),
      );
      compute.onDelete = 'exit';
      const deleted = cli('delete', name, '--yes', '--wait', '--reason', 'moved');
      await run().settles({ draining: 1 });
      expect((await run().status()).deleting).toBe('moved');
      await until('the list to say so', async () =>
        (await cli('list')).stdout
          .split('\n')
          .some((line) => line.startsWith(`${name} `) && line.endsWith('is being deleted')),
      );
      expect(compute.deletions.filter(({ underJob }) => underJob)).toEqual([]);
      run().endJob(busy);
      expect(await deleted).toEqual({
        status: 0,
        stdout: `${name}: ended: all its runners have ended\n`,
        stderr: `${name}: 11 runners to drain; running jobs may finish, then the set ends\n`,
      });
      expect(ci.registrations.size).toBe(0);

      const ended = {
        status: 3,
        stdout: '',
        stderr: `error: set ${name} has already ended; see it with "holdfast set get ${name}"\n`,
      };
      for (const args of [
        ['delete', name],
        ['pause', name],
        ['resume', name],
        ['scale', name, '--replicas', '1'],
        ['hold', name, 'x'],
      ])
        expect(await cli(...args)).toEqual(ended);
      expect(await json('get', `set-${name}`)).toMatchObject({
        name,
        status: 'COMPLETED',
        end: { outcome: 'ended' },
      });
      expect(
        (await json<{ sets: { name: string; status: string }[] }>('list', '--all')).sets,
      ).toEqual(expect.arrayContaining([expect.objectContaining({ name, status: 'COMPLETED' })]));
      const never = {
        status: 3,
        stdout: '',
        stderr: expect.stringContaining('no set nobody in namespace default') as unknown,
      };
      for (const args of [
        ['get', 'nobody'],
        ['delete', 'nobody'],
        ['pause', 'nobody'],
        ['drain', 'nobody'],
      ])
        expect(await cli(...args)).toEqual(never);
      expect(await cli('get', 'x', '--namespace', 'no-such-namespace')).toMatchObject({
        status: 2,
        stderr: expect.stringMatching(/^error: namespace "no-such-namespace" does not exist /),
      });
    });

    test('list names the task queue without a worker, and the fix', async () => {
      const nowhere = `nowhere-${randomUUID()}`;
      await world.client.workflow.start('runnerSet', {
        workflowId: setWorkflowId(name),
        taskQueue: nowhere,
        args: [setOf()],
      });
      await until('the list to say so', async () =>
        new RegExp(`^${name} .*no worker answered`, 'm').test(
          (await cli('list', '--limit', '1000')).stdout,
        ),
      );
      expect((await cli('list', '--limit', '1000')).stdout).toContain(
        `Not polled:       task queue ${nowhere}: start a worker with HOLDFAST_TASK_QUEUE=${nowhere} ("holdfast worker")`,
      );
    });

    test('without a worker: list and get print what Temporal knows, other commands fail within seconds; a new set waits for a worker', async () => {
      await json('apply', '-f', await written(setOf()));
      await run().comesTo({ idle: 1 });
      type Row = {
        name: string;
        desired?: number;
        note?: string;
        scope?: string;
        runners?: object;
      };
      const row = async (which = name): Promise<Row | undefined> =>
        (await json<{ sets: Row[] }>('list', '--limit', '1000')).sets.find(
          (one) => one.name === which,
        );
      // A busy worker may not answer in time.
      const answered = await untilSeen(
        'visibility, and an answer of the set',
        row,
        (seen) => seen?.runners !== undefined,
      );
      expect(answered).toMatchObject({
        desired: 1,
        scope: 'acme',
        labels: ['self-hosted', 'linux', 'X64'],
        runners: { starting: 0, idle: 1, busy: 0, draining: 0 },
      });

      await world.suspend();
      const started = performance.now();
      expect(await row()).toMatchObject({
        scope: 'acme',
        labels: ['self-hosted', 'linux', 'X64'],
        note: 'no worker answered within 3 s',
      });
      expect((await cli('list', '--limit', '1000')).stderr).toMatch(
        /^\d+ of \d+ sets did not answer; check that a worker runs/,
      );
      const got = await json<{ set?: unknown; note: string; scope: string }>('get', name);
      expect(got).toMatchObject({
        scope: 'acme',
        note: expect.stringMatching(/^no worker answered/),
      });
      expect(got.set).toBeUndefined();
      expect(await cli('delete', name)).toMatchObject({
        status: 1,
        stderr: expect.stringMatching(/no worker answered .*--yes/),
      });

      const fresh = other('new');
      const applied = await apply(setOf({ max: 7 }), setOf({ name: fresh }));
      expect(applied.status).toBe(1);
      expect(applied.stdout).toMatch(
        new RegExp(
          `^! ${name}: set ${name}: no worker answered within 3 s, so its state is unknown; check that a worker runs on task queue ${world.taskQueue}`,
          'm',
        ),
      );
      expect(applied.stdout).toMatch(
        new RegExp(`^${fresh}: started; not yet processed by a worker$`, 'm'),
      );
      expect(performance.now() - started).toBeLessThan(110_000);
      // A command is not lost meanwhile.
      expect(await cli('pause', name, '--reason', 'nobody there')).toMatchObject({
        status: 1,
        stderr: expect.stringMatching(/no worker answered within 10 s/),
      });
      expect(await json('delete', name, '--yes')).toEqual({
        name,
        deleted: false,
        note: expect.stringMatching(/^no worker answered/),
      });
      await world.resume();
      await run(fresh).comesTo({ idle: 1 });
      await until(
        'the set to have ended',
        async () => (await json<{ status: string }>('get', name)).status === 'COMPLETED',
      );
      expect(await run().handle.result()).toMatchObject({ runners: [] });
    }, 300_000);
  },
);
