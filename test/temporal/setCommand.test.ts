/** Commands to sets, on a server on which a set continues as new all the time. */
import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { promisify } from 'node:util';
import { afterAll, afterEach, beforeEach, expect, test } from '@jest/globals';
import {
  RUNNER_SET_WORKFLOW,
  SET_COMMAND_WORKFLOW,
  setCommandId,
  setCommandReplySignal,
  setCommandSignal,
  setWorkflowId,
  statusQuery,
  type RunnerSetInput,
  type SetCommand,
} from '../../core/contract/index.ts';
import { resolveBinary } from '../../tools/lab/resolve.ts';
import { FakeCiServer } from '../support/fakeCiServer.ts';
import { FakeCompute } from '../support/fakeCompute.ts';
import { holdfastWorld, type HoldfastWorld } from '../support/holdfastWorld.ts';
import { describeIf } from '../support/lab.ts';
import { pages } from '../support/markdown.ts';
import { expectNothingLeft } from '../support/memoryWorld.ts';
import { chainOf, unreplayable } from '../support/replays.ts';
import { SetRun } from '../support/setRun.ts';
import { temporalWithShortHistories } from '../support/shortHistories.ts';
import { until } from '../support/until.ts';

const SUGGESTED_AT = 60;
const AT_ONCE = 50;
/** Without a cache each takes seconds. */
const ROUNDS = 3;

await describeIf(
  'a command to a set',
  async () => await temporalWithShortHistories(SUGGESTED_AT),
  { temporal: true },
  (server) => {
    let compute: FakeCompute;
    let ci: FakeCiServer;
    let world: HoldfastWorld;

    beforeEach(async () => {
      compute = new FakeCompute();
      ci = new FakeCiServer();
      world = await holdfastWorld(server.address, { compute, ciServers: ci });
    });
    afterEach(async () => await world.close());
    afterAll(async () => await server.teardown());

    const start = async (input: Partial<RunnerSetInput> = {}): Promise<SetRun> => {
      const set = await SetRun.start(
        { world, compute, ci },
        { ...(input.max === undefined && { replicas: 0 }), ...input },
      );
      await set.reaches('its first answer', () => true);
      return set;
    };

    /** Ends the set, and replays all that it did. */
    async function endsClean(set: SetRun): Promise<void> {
      await set.end();
      expectNothingLeft({ compute, ci });
      expect(await unreplayable(world.client, [set.handle.workflowId])).toEqual([]);
    }

    /** Ids of the commands that came to the set, and of those that it answered, in this order. */
    async function dealings(
      set: SetRun,
    ): Promise<{ requests: unknown[]; replies: unknown[]; runs: number }> {
      const chain = await chainOf(world.client, set.handle.workflowId);
      const events = chain.flatMap((history) => history.events ?? []);
      const requests = events.flatMap(({ workflowExecutionSignaledEventAttributes: signaled }) =>
        signaled?.signalName === setCommandSignal.name
          ? [
              (
                JSON.parse(Buffer.from(signaled.input?.payloads?.[0]?.data ?? []).toString()) as {
                  workflowId: string;
                }
              ).workflowId,
            ]
          : [],
      );
      const replies = events.flatMap(
        ({ signalExternalWorkflowExecutionInitiatedEventAttributes: sent }) =>
          sent?.signalName === setCommandReplySignal.name
            ? [sent.workflowExecution?.workflowId]
            : [],
      );
      return { requests, replies, runs: chain.length };
    }

    test(`${AT_ONCE} at once: each gets one response, in order, with the resulting set`, async () => {
      const set = await start({ paused: true });
      const answers = await Promise.all(
        Array.from(
          { length: AT_ONCE },
          async (_none, index) =>
            await set.command(
              index % 2 === 0
                ? { command: 'scale', replicas: index }
                : { command: 'pause', reason: `because of ${index}` },
            ),
        ),
      );
      expect(
        answers.map(({ replicas, blockedReason }, index) =>
          index % 2 === 0 ? replicas : blockedReason,
        ),
      ).toEqual(
        Array.from({ length: AT_ONCE }, (_none, index) =>
          index % 2 === 0 ? index : `paused: because of ${index}`,
        ),
      );
      // All of that is more than one history may be: these come as the set goes on as a new run.
      const next = await Promise.all(
        Array.from(
          { length: 10 },
          async (_none, index) => await set.command({ command: 'pause', reason: `then ${index}` }),
        ),
      );
      expect(next.map(({ blockedReason }) => blockedReason)).toEqual(
        Array.from({ length: 10 }, (_none, index) => `paused: then ${index}`),
      );
      await until(
        'the set to have gone on as a new run',
        async () => (await dealings(set)).runs > 1,
      );
      const { requests, replies } = await dealings(set);
      expect(new Set(requests).size).toBe(AT_ONCE + 10);
      expect(replies).toEqual(requests);
      await endsClean(set);
    });

    test('that is repeated is not executed again, not even by later runs', async () => {
      const set = await start();
      const id = randomUUID();
      const sent: SetCommand = { command: 'pause', reason: 'once' };
      expect(await set.command(sent, id)).toMatchObject({ blockedReason: 'paused: once' });
      expect((await set.command({ command: 'resume' })).blockedReason).toBeUndefined();
      const { runId } = await set.handle.describe();
      for (let count = 0; (await set.handle.describe()).runId === runId; count++) {
        if (count === SUGGESTED_AT) throw new Error('the set does not continue as new');
        await set.command({ command: 'resume' });
      }
      expect((await set.command(sent, id)).blockedReason).toBeUndefined();
      // By the same signal, too, as a command's workflow that was reset would send it.
      await set.handle.signal(setCommandSignal, {
        workflowId: setCommandId(set.name, id),
        command: sent,
      });
      expect((await set.command({ command: 'scale', replicas: 0 })).blockedReason).toBeUndefined();
      await endsClean(set);
    });

    test('commands, signals and job events with an empty worker cache: all histories replay', async () => {
      await world.suspend();
      await world.resume(undefined, undefined, { maxCachedWorkflows: 0 });
      const set = await start();
      const single = await world.start({ ephemeral: false, timeouts: { jobTimeout: '1h' } });
      compute.start(await single.pod());
      const { runnerName } = await single.reaches('Idle', ({ phase }) => phase === 'Idle');
      for (let round = 0; round < ROUNDS; round++) {
        const event = set.event('queued', round + 1);
        await Promise.all([
          set.tell(event),
          set.command({ command: 'scale', replicas: 0 }),
          set.command({ command: 'pause', reason: 'maintenance' }),
          set.tell({ ...event, action: 'completed', conclusion: 'cancelled' }),
          set.command({ command: 'resume' }),
          set.status(),
        ]);
      }
      ci.connect(runnerName);
      ci.setBusy(runnerName, true);
      compute.startJob(await single.pod());
      await single.reaches('Busy', ({ phase }) => phase === 'Busy');
      const hint = async (): Promise<void> =>
        await single.handle.signal('podState', { pod: 'another', state: 'idle' });
      // A life's own updates among other news.
      for (let round = 0; round < ROUNDS; round++)
        await Promise.all([
          hint(),
          single.handle.executeUpdate('extendDeadline', { args: [{ by: '1s' }] }),
          hint(),
          single.handle.query(statusQuery),
        ]);
      await Promise.all([
        hint(),
        single.handle.executeUpdate('drain', { args: [{ reason: 'over' }] }),
        hint(),
      ]);
      ci.setBusy(runnerName, false);
      compute.endJob(await single.pod());
      expect(await single.result()).toMatchObject({ outcome: 'succeeded' });
      // Of two that came together either is the last word.
      expect((await set.command({ command: 'resume' })).blockedReason).toBeUndefined();
      await endsClean(set);
      expect(await unreplayable(world.client, [single.handle.workflowId])).toEqual([]);
    }, 120_000);

    test('a set that does not run, or is being drained: a clear error; draining twice is none', async () => {
      await expect(
        world.client.workflow.execute(SET_COMMAND_WORKFLOW, {
          taskQueue: world.taskQueue,
          workflowId: randomUUID(),
          args: [{ set: 'nobody', command: 'pause' }],
        }),
      ).rejects.toMatchObject({
        cause: { type: 'SetNotFound', message: 'no set nobody runs: see "holdfast set list"' },
      });
      const set = await start({ replicas: 1 });
      const [runner] = (await set.comesTo({ idle: 1 })).runners;
      if (runner === undefined) throw new Error('no runner');
      compute.onDelete = 'linger';
      set.startJob(runner);
      await set.tell(set.event('in_progress', 1, runner.runnerName));
      await set.settles({ busy: 1 });
      expect(await set.command({ command: 'drain', reason: 'moved' })).toMatchObject({
        deleting: 'moved',
      });
      for (const command of [
        { command: 'scale', replicas: 2 },
        { command: 'pause' },
        { command: 'resume' },
        { command: 'hold', runner: runner.workflowId },
      ] satisfies SetCommand[]) {
        await expect(set.command(command)).rejects.toMatchObject({
          cause: {
            type: 'SetCommandRejected',
            message: 'the set is being deleted and ends when its runners have ended',
          },
        });
      }
      expect(await set.command({ command: 'drain', reason: 'once more' })).toMatchObject({
        deleting: 'moved',
      });
      set.endJob(runner);
      // Whoever is too late hears so, at whatever moment of the end.
      const late = await Promise.allSettled(
        Array.from({ length: 10 }, async () => await set.command({ command: 'pause' })),
      );
      for (const each of late)
        expect(each).toMatchObject({
          status: 'rejected',
          reason: { cause: { type: expect.stringMatching(/^Set(CommandRejected|NotFound)$/) } },
        });
      expect(await set.handle.result()).toMatchObject({ deleting: 'moved', runners: [] });
      await expect(set.command({ command: 'resume' })).rejects.toMatchObject({
        cause: { type: 'SetNotFound' },
      });
      expect(await unreplayable(world.client, [set.handle.workflowId])).toEqual([]);
    });

    test('a set that is terminated during the command', async () => {
      const name = `set-${randomUUID().slice(0, 8)}`;
      const set = await world.client.workflow.start(RUNNER_SET_WORKFLOW, {
        workflowId: setWorkflowId(name),
        taskQueue: 'nobody',
        args: [{ name, replicas: 0, template: SetRun.template() }],
      });
      const command = await world.client.workflow.start(SET_COMMAND_WORKFLOW, {
        taskQueue: world.taskQueue,
        workflowId: setCommandId(name, 'x'),
        args: [{ set: name, command: 'pause' }],
      });
      await until('the set to have it', async () =>
        ((await set.fetchHistory()).events ?? []).some(
          ({ workflowExecutionSignaledEventAttributes: signaled }) =>
            signaled?.signalName === setCommandSignal.name,
        ),
      );
      await set.terminate('lost');
      await expect(command.result()).rejects.toMatchObject({
        cause: { type: 'SetNotFound', message: `the set ${name} ended before it answered` },
      });
    });

    test('an invalid request, and a request without a waiting command, have no effect on the set', async () => {
      const set = await start();
      for (const nonsense of [
        undefined,
        null,
        'pause',
        {},
        { id: 'x' },
        { id: '', command: { command: 'pause' } },
        { id: 'ä'.repeat(600), command: { command: 'pause' } },
        { id: 'x', command: { command: 'toString' } },
        { id: 'x', command: 'pause' },
      ])
        await set.handle.signal(setCommandSignal.name, nonsense);
      // By hand, and so unchecked.
      for (const [index, command] of [
        { command: 'apply' },
        { command: 'apply', declaration: 1 },
        { command: 'setTemplate' },
        { command: 'scale', replicas: 'many', name: 'x' },
        { command: 'hold' },
      ].entries())
        await set.handle.signal(setCommandSignal.name, { id: `by hand ${index}`, command });
      expect(await set.command({ command: 'pause', reason: 'x' })).toMatchObject({
        blockedReason: 'paused: x',
        desired: 0,
        name: set.name,
        holds: [],
      });
      await endsClean(set);
    });

    test('by the lines of docs/runner-sets.md, with only the temporal command', async () => {
      const set = await start({ minIdle: 0, max: 2 });
      const temporal = await resolveBinary('temporal');
      const lines = pages()
        .flatMap(({ path, code }) => (path === 'docs/runner-sets.md' ? code : []))
        .filter((line) => line.includes(`--type ${SET_COMMAND_WORKFLOW}`));
      const ran: string[] = [];
      for (const line of lines) {
        const [, verb = '', input = ''] =
          /^temporal workflow (\w+) --type setCommand --task-queue holdfast --input '(.*)'$/.exec(
            line,
          ) ?? [];
        const { set: named, ...command } = JSON.parse(input) as { set: string; command: string };
        expect([verb, named]).toEqual(['execute', 'linux']);
        const args = [
          'workflow',
          verb,
          '--type',
          SET_COMMAND_WORKFLOW,
          '--task-queue',
          world.taskQueue,
          '--input',
          JSON.stringify({ set: set.name, ...command }),
          '--address',
          server.address,
          '--output',
          'json',
        ];
        const { stdout } = await promisify(execFile)(temporal, args, {
          env: { ...process.env, TEMPORAL_CONFIG_FILE: '/dev/null' },
        });
        ran.push(
          `${command.command} ${(JSON.parse(stdout) as { result: { name: string } }).result.name}`,
        );
      }
      expect(ran).toEqual(
        ['scale', 'setTemplate', 'pause', 'resume', 'drain'].map((each) => `${each} ${set.name}`),
      );
      await until(
        'the set to end',
        async () =>
          (await world.client.workflow.getHandle(setWorkflowId(set.name)).describe()).status
            .name === 'COMPLETED',
      );
    });
  },
);
