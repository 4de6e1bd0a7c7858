/** Commands of every kind under the supervisor in real pods, stopped in every way: status, log lines, record, time, nothing left. */
import { constants } from 'node:os';
import { expect } from '@jest/globals';
import { STOP_REASON_ANNOTATION } from '../../activities/compute/kubernetes/metadata.ts';
import { cancelSignal, type RunnerInput } from '../../core/contract/index.ts';
import { ClusterWorld } from '../support/clusterWorld.ts';
import { CommandRun } from '../support/commandRun.ts';
import { describeWithLab } from '../support/lab.ts';
import { inContainer } from '../support/podLog.ts';
import {
  census,
  FORWARDS,
  gracefully,
  interrupted,
  notExited,
  STOPPED_CHILDREN,
  strangers,
  swallowed,
  TICK,
  timedOut,
} from '../support/stoppedChildren.ts';
import { handles } from '../support/supervisedProcess.ts';
import { together, type Scenario } from '../support/together.ts';
import { until } from '../support/until.ts';

const GRACE_MS = 3_000;
/** The census takes as long as the machine lets it. */
const CLEANUP_MS = 30_000;
/** A busy machine may take this long to run what is due; a command that nobody stops goes on for more than a minute. */
const SLACK_MS = 40_000;
const STOP = { signalTimeout: '3s', cleanupTimeout: '30s', cleanupCommand: census(true) };

interface Case {
  readonly script: string;
  readonly input?: Partial<RunnerInput>;
  /** A pod deletion is how SIGTERM comes; all else is sent from inside; by its timeout it stops by itself, when its log has been found. */
  readonly by: 'deletion' | 'timeout' | readonly string[];
  readonly status: number;
  readonly signal?: string | null;
  readonly reason?: 'cancelled' | 'timeout';
  readonly errors: readonly string[];
  readonly verdict: { readonly outcome: string; readonly cause?: string };
  readonly prints?: string;
  /** Once told to stop it goes on until it finds this file, made when all signals have been received. */
  readonly goesOnUntil?: string;
}

/** Lost to whoever deleted the pod: a command is its own job. */
const LOST = { outcome: 'errored', cause: 'deleted_externally' };

async function play(
  world: ClusterWorld,
  {
    script,
    input = {},
    by,
    status,
    signal = null,
    reason = 'cancelled',
    errors,
    verdict,
    prints,
    goesOnUntil,
  }: Case,
): Promise<void> {
  const life = await CommandRun.start(world, 'signalled', script, { stop: STOP, ...input });
  const { pod, log } = await life.running();
  await log.says('up');
  if (by === 'deletion') await life.run.deletePod(pod, GRACE_MS / 1_000 + CLEANUP_MS / 1_000 + 5);
  else if (by !== 'timeout') {
    for (const [index, name] of by.entries()) {
      // Pending ones have no order: the next is sent when the one before has been received.
      await until(
        `signal ${index} to be received`,
        () => log.errors.length >= index,
        () => log.text,
      );
      await inContainer(world.namespace, pod, `kill -${name} 1`);
    }
    if (goesOnUntil !== undefined) {
      await until(
        'the last signal to be received',
        () => log.errors.length >= by.length,
        () => log.text,
      );
      await inContainer(world.namespace, pod, `touch ${goesOnUntil}`);
    }
  }
  const result = await life.ends();
  await log.complete();

  expect(log.errors.map(({ text }) => text)).toEqual(errors);
  const [end] = life.containerEnds();
  expect(end?.record).toMatchObject({ exitCode: status, signal, reason });
  expect(end?.exitCode).toBe(status);
  expect(result).toMatchObject({ ...verdict, exitCode: status, attempt: 1 });
  expect(log.text).toContain(`reason=${reason}`);
  expect(log.text).toContain('census');
  expect(strangers(log.text)).toEqual([]);
  if (prints !== undefined) expect(log.text).toContain(prints);
  const [first] = log.errors;
  const tookMs = Date.parse(end?.record?.endedAt ?? '') - (first?.at ?? Number.NaN);
  expect(tookMs).toBeLessThan((errors.includes(notExited('3s')) ? GRACE_MS : 1_000) + SLACK_MS);
  // The kubelet's time is in whole seconds.
  expect((end?.finishedAt ?? Number.NaN) - (first?.at ?? Number.NaN)).toBeLessThan(
    GRACE_MS + CLEANUP_MS + SLACK_MS,
  );
}

const terminated: Record<string, Case> = Object.fromEntries(
  STOPPED_CHILDREN.map(
    ({ child, script, status, signal = null, graceful, twice = false, prints }) => [
      `SIGTERM, a child that ${child}`,
      {
        // The second signal takes a call into the container, which takes a moment on a loaded machine.
        script: twice ? `SAVE="sleep 8"; ${script}` : script,
        // For what ends by itself: the end of the grace would come after that on any machine.
        ...(graceful ? { input: { stop: { ...STOP, signalTimeout: twice ? '60s' : '20s' } } } : {}),
        by: twice ? ['TERM', 'TERM'] : 'deletion',
        status,
        signal,
        errors: [
          interrupted('terminated'),
          ...(twice ? [swallowed('terminated')] : []),
          graceful ? gracefully(twice ? '1m0s' : '20s') : notExited('3s'),
        ],
        verdict: twice ? { outcome: 'failed' } : LOST,
        ...(prints === undefined ? {} : { prints }),
      },
    ],
  ),
);

const PLAIN = 'echo up; exec sleep 77';

const stopped: Record<string, Case> = {
  SIGINT: {
    script: PLAIN,
    by: ['INT'],
    status: 130,
    signal: 'SIGINT',
    errors: [interrupted('interrupt'), gracefully('3s')],
    verdict: { outcome: 'failed' },
  },
  'SIGQUIT: 131, and no core': {
    script: PLAIN,
    by: ['QUIT'],
    status: 131,
    signal: 'SIGQUIT',
    errors: [interrupted('quit'), gracefully('3s')],
    verdict: { outcome: 'failed' },
  },
  SIGHUP: {
    script: PLAIN,
    by: ['HUP'],
    status: 129,
    signal: 'SIGHUP',
    errors: [interrupted('hangup'), gracefully('3s')],
    verdict: { outcome: 'failed' },
  },
  'SIGHUP, ignored as all others': {
    script: 'trap "" INT TERM QUIT HUP; echo up; sleep 77',
    by: ['HUP'],
    status: 137,
    signal: 'SIGKILL',
    errors: [interrupted('hangup'), notExited('3s')],
    verdict: { outcome: 'failed' },
  },
  'two signals in a row: the second is swallowed': {
    script: `trap "while [ ! -e /tmp/told ]; do sleep 0.05; done; exit 4" TERM; trap "exit 9" INT; echo up; ${TICK}`,
    input: { stop: { ...STOP, signalTimeout: '60s' } },
    by: ['TERM', 'INT'],
    goesOnUntil: '/tmp/told',
    status: 4,
    errors: [interrupted('terminated'), swallowed('interrupt'), gracefully('1m0s')],
    verdict: { outcome: 'failed' },
  },
  'stopped from inside, with status 0: nobody knows whether the work is complete': {
    script: `trap "exit 0" TERM; echo up; ${TICK}`,
    by: ['TERM'],
    status: 0,
    errors: [interrupted('terminated'), gracefully('3s')],
    verdict: { outcome: 'errored', cause: 'agent_lost' },
  },
  'stop.to process, as a step has it: its own trap passes the signal on, and nothing else does': {
    script: FORWARDS,
    input: { stop: { gracePeriod: '60s', cleanupCommand: census(true) } },
    by: ['TERM'],
    status: 5,
    errors: [interrupted('terminated'), gracefully('1m0s')],
    verdict: { outcome: 'failed' },
    prints: 'child got term=0 usr1=1',
  },
  'stop.to group: all of it gets the signal, and the child gets it twice': {
    script: FORWARDS,
    input: { stop: { gracePeriod: '60s', target: 'group', cleanupCommand: census(true) } },
    by: ['TERM'],
    status: 5,
    errors: [interrupted('terminated'), gracefully('1m0s')],
    verdict: { outcome: 'failed' },
    prints: 'child got term=1 usr1=1',
  },
  'its timeout: SIGINT, and status 127 whatever it says': {
    script: `trap "exit 0" INT; echo up; ${TICK}`,
    input: { timeouts: { jobTimeout: '8s' } },
    by: 'timeout',
    status: 127,
    reason: 'timeout',
    errors: [timedOut('8s'), gracefully('3s')],
    verdict: { outcome: 'aborted', cause: 'run_timeout' },
  },
  'its timeout, ignored: SIGKILL': {
    script: 'trap "" INT; echo up; sleep 77',
    input: { timeouts: { jobTimeout: '8500ms' } },
    by: 'timeout',
    status: 127,
    signal: 'SIGKILL',
    reason: 'timeout',
    errors: [timedOut('8.5s'), notExited('3s')],
    verdict: { outcome: 'aborted', cause: 'run_timeout' },
  },
  'a grace of hours, as people read it': {
    script: `trap "exit 0" INT; echo up; ${TICK}`,
    input: { timeouts: { jobTimeout: '8s' }, stop: { ...STOP, signalTimeout: '90m' } },
    by: 'timeout',
    status: 127,
    reason: 'timeout',
    errors: [timedOut('8s'), gracefully('1h30m0s')],
    verdict: { outcome: 'aborted', cause: 'run_timeout' },
  },
};

const scenarios = Object.fromEntries(
  Object.entries({ ...terminated, ...stopped }).map(
    ([name, each]): [string, Scenario<ClusterWorld>] => [
      name,
      async (world) => await play(world, each),
    ],
  ),
);

/** The supervisor's own folder in its image: what a command line of one's own starts it with. */
const OWN_SUPERVISOR = [
  '/opt/holdfast/tini',
  '-s',
  '--',
  '/opt/holdfast/ld.so',
  '--library-path',
  '/opt/holdfast/lib',
  '/opt/holdfast/node',
  '/opt/holdfast/supervisor.mjs',
];

/** A command that drains for ten minutes, and learns why it is stopped from a file that no annotation reaches: its kubelet shows it late, or never. */
async function startUnseen(
  world: ClusterWorld,
  name: string,
  signalTimeout: string,
): Promise<CommandRun> {
  const words = [
    ...OWN_SUPERVISOR,
    '--stop-reason-source',
    '/tmp/reason',
    '--',
    'sh',
    '-c',
    `trap "exit 6" TERM; echo up; ${TICK}`,
  ];
  return await CommandRun.start(world, name, words, {
    image: 'holdfast.test/supervisor:1',
    supervisor: 'image',
    onTerm: 'drain',
    stop: { drainTimeout: '10m', signalTimeout, cleanupTimeout: '4s' },
  });
}

const drains: Record<string, Scenario<ClusterWorld>> = {
  'cancelled with stop, the reason unseen for 5 s: stopped gracefully when it is seen, and not told to go before':
    async (world) => {
      const life = await startUnseen(world, 'unseen', '60s');
      const { pod, log } = await life.running();
      await log.says('up');
      await life.run.handle.signal(cancelSignal, { reason: 'now', mode: 'stop' });
      await world.namespace.waitForPod(
        pod,
        ({ metadata }) => metadata?.annotations?.[STOP_REASON_ANNOTATION] === 'cancelled',
      );
      await inContainer(world.namespace, pod, 'sleep 5; echo cancelled > /tmp/reason');
      expect(await life.ends()).toMatchObject({
        outcome: 'aborted',
        cause: 'cancelled',
        exitCode: 6,
      });
      const { text } = await log.complete();
      expect(text).toContain('stopping the process: cancelled');
      expect(text).not.toContain(interrupted('terminated'));
      expect(life.containerEnds()).toMatchObject([
        { exitCode: 6, record: { exitCode: 6, reason: 'cancelled' } },
      ]);
    },

  // Long before the ten minutes are over: these tests would not see their end.
  'the same, never seen: it ends with the grace of a stop': async (world) => {
    const life = await startUnseen(world, 'never-seen', '3s');
    const { log } = await life.running();
    await log.says('up');
    await life.run.handle.signal(cancelSignal, { reason: 'now', mode: 'stop' });
    expect(await life.ends()).toMatchObject({ outcome: 'aborted', cause: 'cancelled' });
  },
};

const ends: Record<string, Scenario<ClusterWorld>> = {
  'a signal before the child has started: it never starts': async (world) => {
    // A named pipe holds the preparations up: opening it to write waits for a reader.
    const mounts = [{ name: 'run', mountPath: '/run-dir' }];
    const spec = {
      volumes: [{ name: 'run', emptyDir: {} }],
      initContainers: [
        {
          name: 'hold',
          image: 'holdfast.test/busybox:1',
          command: ['mkfifo', '/run-dir/jobs'],
          volumeMounts: mounts,
        },
      ],
      containers: [{ name: 'runner', volumeMounts: mounts }],
    };
    const life = await CommandRun.start(
      world,
      'early',
      [
        ...OWN_SUPERVISOR,
        '--runner-kind',
        'github',
        '--run-dir',
        '/run-dir',
        '--',
        'sh',
        '-c',
        'echo ran',
      ],
      { image: 'holdfast.test/supervisor:1', supervisor: 'image', stop: STOP, pod: { spec } },
    );
    const { pod, log } = await life.running();
    // SIGHUP: the last that it takes. Node itself handles SIGTERM and SIGINT before any of our code runs, and dies of them.
    await until('the supervisor to take signals', () =>
      life
        .processes()
        .some(
          ({ pid, command }) =>
            command.includes('supervisor.mjs') && handles(pid, constants.signals.SIGHUP),
        ),
    );
    await life.run.deletePod(pod, 12);
    expect(await life.ends()).toMatchObject({ ...LOST, exitCode: 143 });
    await log.complete();
    // What it says of the signal is the matter of another test (integration/supervisor.runs): the log of a container that ends at once may be
    // gone before it has been read.
    expect(log.text).not.toContain('ran');
    expect(life.containerEnds()).toMatchObject([
      {
        exitCode: 143,
        record: { exitCode: 143, signal: null, reason: 'cancelled', startedAt: null },
      },
    ]);
  },

  'a signal after it has ended: cleanup goes on, status and verdict are its own': async (world) => {
    const cleanupCommand = [
      'sh',
      '-c',
      'echo cleaning $HOLDFAST_EXIT_CODE; while [ ! -e /tmp/told ]; do sleep 0.1; done; sleep 1; echo cleaned',
    ];
    const life = await CommandRun.start(world, 'late', 'echo up; exit 3', {
      stop: { signalTimeout: '3s', cleanupTimeout: '30s', cleanupCommand },
    });
    const { pod, log } = await life.running();
    await log.says('cleaning 3');
    await life.run.deletePod(pod, 38);
    await log.says(interrupted('terminated'));
    await inContainer(world.namespace, pod, 'touch /tmp/told');
    expect(await life.ends()).toMatchObject({ outcome: 'failed', exitCode: 3, attempt: 1 });
    await log.complete();
    expect(log.errors.map(({ text }) => text)).toEqual([
      `${interrupted('terminated')} (the process has ended already)`,
    ]);
    expect(log.text).toContain('cleaned');
    expect(life.containerEnds()).toMatchObject([
      { exitCode: 3, record: { exitCode: 3, signal: null, reason: null } },
    ]);
  },

  'a child that is killed for memory: 137, recorded, failed/oom_killed, and nothing of it left':
    async (world) => {
      const spec = { containers: [{ name: 'runner', resources: { limits: { memory: '192Mi' } } }] };
      const life = await CommandRun.start(world, 'greedy', ['tail', '/dev/zero'], {
        stop: STOP,
        pod: { spec },
      });
      expect(await life.ends()).toMatchObject({
        outcome: 'failed',
        cause: 'oom_killed',
        exitCode: 137,
        attempt: 1,
      });
      const [end] = life.containerEnds();
      expect(end).toMatchObject({ exitCode: 137, reason: 'OOMKilled' });
      // Where the kernel kills the whole container (cgroup version 2), nobody is left to write it.
      if (end?.message !== undefined)
        expect(end.record).toMatchObject({ exitCode: 137, signal: 'SIGKILL', reason: null });
    },
};

await describeWithLab('signals in pods', { temporal: true, nodes: 'kubelet' }, (lab) => {
  together(
    async () => await ClusterWorld.open(lab, { webhook: false }),
    { ...scenarios, ...drains, ...ends },
    {
      afterwards: {
        'nothing is left: no pod, Secret or running workflow': async (world) =>
          await world.expectNothingLeft(),
      },
    },
  );
});
