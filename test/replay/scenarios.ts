import { CiServerError } from '../../activities/ports/ciServerError.ts';
import {
  jobEventSignal,
  type RunnerInput,
  type RunnerResult,
  type RunnerStatus,
} from '../../core/contract/index.ts';
import type { FakeCiServer } from '../support/fakeCiServer.ts';
import { FakeReruns } from '../support/fakeReruns.ts';
import type { FakeCompute } from '../support/fakeCompute.ts';
import type { RunnerRun } from '../support/holdfastWorld.ts';
import { until } from '../support/until.ts';
import type { SupervisorRecord } from '../../core/domain/pod.ts';

/** One runner on a stage of its own. */
export interface Stage {
  readonly compute: FakeCompute;
  readonly ci: FakeCiServer;
  readonly run: RunnerRun;
}

/** A life whose history is recorded: what is asked for, what happens, and how it must end for the record to be worth keeping. */
export interface Scenario {
  readonly input?: Partial<RunnerInput>;
  /** Whether the pods tell online and busy by themselves. @default true */
  readonly probes?: boolean;
  readonly play: (stage: Stage) => Promise<void>;
  readonly ends: Partial<RunnerResult> | 'cancelled';
  /** The life hands its registration on; what frees it comes here. */
  readonly deregistration?: (stage: Stage, runnerName: string) => void;
  /** The runner's lost job runs again. */
  readonly rerun?: true;
  /** @default 1 */
  readonly runs?: number;
}

const COMMAND: Partial<RunnerInput> = { ciServer: 'none', command: ['work'] };
const EVICTION = { terminating: true, disruptionReason: 'EvictionByEvictionAPI' } as const;

/** Everything that a runner's life may meet, one scenario each. The name is the history's file name. */
export const SCENARIOS: Readonly<Record<string, Scenario>> = {
  'ephemeral-success': {
    play: async (stage) => await finishJob(stage, await busy(stage)),
    ends: { outcome: 'succeeded', attempt: 1, unregisterAttempts: 0 },
  },
  'ephemeral-success-by-its-own-record': {
    play: async (stage) => await finishJob(stage, await busy(stage), { job: 'completed' }),
    ends: { outcome: 'succeeded', attempt: 1, unregisterAttempts: 0 },
  },
  'ephemeral-success-by-look-ups': {
    probes: false,
    async play(stage) {
      const pod = await idle(stage);
      stage.ci.forget((await stage.run.status()).runnerName);
      stage.compute.end(pod, 0);
    },
    ends: { outcome: 'succeeded', attempt: 1 },
  },
  'ephemeral-success-by-job-events': {
    probes: false,
    async play(stage) {
      const pod = await idle(stage);
      const { runnerName } = await stage.run.status();
      await stage.run.handle.signal(jobEventSignal, {
        action: 'in_progress',
        jobId: '42',
        runnerName,
        jobName: 'build',
      });
      await phase(stage, 'Busy');
      await stage.run.handle.signal(jobEventSignal, {
        action: 'completed',
        jobId: '42',
        runnerName,
      });
      await finishJob(stage, pod);
    },
    ends: { outcome: 'succeeded', unregisterAttempts: 0 },
  },
  'static-drained-while-busy': {
    input: { ephemeral: false },
    async play(stage) {
      const pod = await busy(stage);
      await stage.run.handle.executeUpdate('drain', { args: [{ reason: 'node maintenance' }] });
      await until('three refusals', () => stage.ci.count('remove') >= 3);
      stage.ci.setBusy((await stage.run.status()).runnerName, false);
      stage.compute.endJob(pod);
    },
    ends: { outcome: 'succeeded', attempt: 1 },
  },
  'static-continued-as-new': {
    input: { ephemeral: false },
    async play(stage) {
      const pod = await busy(stage);
      for (
        let job = 1;
        (await stage.run.handle.describe()).runId === (await firstRunId(stage));
        job++
      ) {
        stage.compute.endJob(pod);
        await phase(stage, 'Idle');
        stage.compute.startJob(pod);
        await phase(stage, 'Busy');
        if (job > 500)
          throw new Error('500 jobs, and the server does not suggest to continue as new');
      }
      stage.ci.setBusy((await stage.run.status()).runnerName, false);
      stage.compute.endJob(pod);
      await phase(stage, 'Idle');
      await stage.run.handle.executeUpdate('drain', { args: [] });
    },
    ends: { outcome: 'succeeded', attempt: 1 },
    runs: 2,
  },
  'cancel-drain-while-busy': {
    async play(stage) {
      const pod = await busy(stage);
      await stage.run.handle.signal('cancel', { mode: 'drain', reason: 'scale-down' });
      await phase(stage, 'Draining');
      await finishJob(stage, pod);
    },
    ends: { outcome: 'aborted', cause: 'cancelled' },
  },
  'cancel-stop-while-busy': {
    async play(stage) {
      const pod = await busy(stage);
      stage.compute.onDelete = 'linger';
      await stage.run.handle.signal('cancel', { reason: 'superseded by hand' });
      await until('the graceful stop', () => stage.compute.deletions.length > 0);
      stage.ci.setBusy((await stage.run.status()).runnerName, false);
      stage.compute.end(pod, 143);
    },
    ends: { outcome: 'aborted', cause: 'cancelled' },
  },
  'cancel-force-while-busy': {
    async play(stage) {
      await busy(stage);
      stage.ci.setBusy((await stage.run.status()).runnerName, false);
      await stage.run.handle.signal('cancel', { mode: 'force', reason: 'now' });
    },
    ends: { outcome: 'aborted', cause: 'cancelled' },
  },
  'cancel-upgraded-drain-stop-force': {
    async play(stage) {
      await busy(stage);
      stage.compute.onDelete = 'linger';
      await stage.run.handle.signal('cancel', { mode: 'drain', reason: 'first' });
      await phase(stage, 'Draining');
      await stage.run.handle.signal('cancel', { mode: 'stop', reason: 'second' });
      await until('the graceful stop', () => stage.compute.deletions.length > 0);
      stage.ci.setBusy((await stage.run.status()).runnerName, false);
      await stage.run.handle.signal('cancel', { mode: 'force', reason: 'third' });
    },
    ends: { outcome: 'aborted', cause: 'cancelled' },
  },
  'plain-cancellation': {
    async play(stage) {
      await idle(stage);
      await stage.run.handle.cancel();
    },
    ends: 'cancelled',
  },
  'cancelled-before-the-container-started': {
    async play(stage) {
      await stage.run.pod();
      await stage.run.handle.signal('cancel', 'not needed any more');
    },
    ends: { outcome: 'aborted', cause: 'cancelled' },
  },
  'evicted-while-busy-and-rerun': {
    input: { rerun: { onLoss: true } },
    async play(stage) {
      const pod = await busy(stage);
      const { runnerName } = await stage.run.status();
      await stage.run.handle.signal(jobEventSignal, {
        action: 'in_progress',
        jobId: '42',
        repository: 'acme/web',
        runnerName,
      });
      await stage.run.reaches('the job', ({ job }) => job !== undefined);
      stage.ci.setBusy(runnerName, false);
      const reruns = stage.ci.reruns as FakeReruns;
      reruns.begin('42', runnerName);
      reruns.end('42', 'failure');
      stage.compute.end(pod, 143, EVICTION);
    },
    ends: { outcome: 'errored', cause: 'evicted', attempt: 1 },
    rerun: true,
  },
  'vanished-while-idle-and-replaced': {
    async play(stage) {
      stage.compute.vanish(await idle(stage));
      await finishJob(stage, await busy(stage, 2));
    },
    ends: { outcome: 'succeeded', attempt: 2 },
  },
  'evicted-while-busy': {
    async play(stage) {
      const pod = await busy(stage);
      stage.ci.setBusy((await stage.run.status()).runnerName, false);
      stage.compute.end(pod, 143, EVICTION);
    },
    ends: { outcome: 'errored', cause: 'evicted', attempt: 1 },
  },
  'evicted-while-busy-and-replaced': {
    input: { onEviction: 'replace' },
    async play(stage) {
      stage.compute.end(await busy(stage), 143, EVICTION);
      await finishJob(stage, await busy(stage, 2));
    },
    ends: { outcome: 'succeeded', attempt: 2 },
  },
  'handed-to-deregistration': {
    play: async (stage) => stage.compute.end(await busy(stage), 137),
    ends: { outcome: 'failed', exitCode: 137 },
    deregistration: ({ ci }, runnerName) => ci.setBusy(runnerName, false),
  },
  'out-of-memory': {
    play: async (stage) => stage.compute.end(await idle(stage), 137, { oomKilled: true }),
    ends: { outcome: 'failed', cause: 'oom_killed' },
  },
  'runner-version-refused': {
    play: async (stage) => stage.compute.end(await idle(stage), 7),
    ends: { outcome: 'errored', cause: 'runner_deprecated', exitCode: 7 },
  },
  'image-pull': {
    async play({ compute, run }) {
      compute.change(await run.pod(), {
        scheduled: true,
        problem: {
          kind: 'invalid_image',
          message: 'couldn’t parse image name',
          since: new Date().toISOString(),
        },
      });
    },
    ends: { outcome: 'errored', cause: 'image_pull' },
  },
  unschedulable: {
    input: { timeouts: { podUnscheduled: '300ms' } },
    play: async ({ compute, run }) =>
      compute.change(await run.pod(), { unschedulable: '0/3 nodes are available' }),
    ends: { outcome: 'errored', cause: 'unschedulable' },
  },
  'never-online': {
    input: { timeouts: { podUnscheduled: '1s', registration: '300ms' } },
    play: async ({ compute, run }) =>
      compute.change(await run.pod(), { scheduled: true, startedAt: new Date().toISOString() }),
    ends: { outcome: 'errored', cause: 'never_registered' },
  },
  'never-registered-by-look-ups': {
    probes: false,
    input: { timeouts: { registration: '400ms' } },
    play: async ({ compute, run }) => compute.start(await run.pod()),
    ends: { outcome: 'errored', cause: 'never_registered' },
  },
  'job-timeout-extended': {
    input: { timeouts: { jobTimeout: '1s' } },
    async play(stage) {
      await busy(stage);
      await stage.run.handle.executeUpdate('extendDeadline', { args: [{ by: '1s' }] });
      stage.ci.setBusy((await stage.run.status()).runnerName, false);
    },
    ends: { outcome: 'aborted', cause: 'run_timeout' },
  },
  'idle-timeout': {
    input: { timeouts: { idle: '200ms' } },
    play: async ({ compute, run }) => compute.start(await run.pod()),
    ends: { outcome: 'aborted', cause: 'idle_timeout' },
  },
  'command-success': {
    input: COMMAND,
    async play(stage) {
      const pod = await started(stage);
      stage.compute.change(pod, { ended: true, exit: { code: 0, oomKilled: false, record: {} } });
    },
    ends: { outcome: 'succeeded', attempt: 1 },
  },
  'command-evicted-and-resumed': {
    input: {
      ...COMMAND,
      onTerm: 'checkpoint',
      onEviction: 'resume',
      volumeClaims: [{ name: 'state', mountPath: '/state', storage: '1Gi' }],
    },
    async play(stage) {
      stage.compute.nodeStates.push('unreachable');
      const pod = await started(stage);
      stage.compute.change(pod, {
        ended: true,
        exit: { code: 143, oomKilled: false, record: { reason: 'evicted' } },
        ...EVICTION,
      });
      stage.compute.vanish(await started(stage, 2));
      const last = await started(stage, 3);
      stage.compute.change(last, {
        ended: true,
        exit: { code: 0, oomKilled: false, record: { reason: 'evicted' } },
        ...EVICTION,
      });
    },
    ends: { outcome: 'succeeded', attempt: 3 },
  },
  'command-cancelled': {
    input: COMMAND,
    async play(stage) {
      await started(stage);
      await stage.run.handle.signal('cancel', 'enough');
    },
    ends: { outcome: 'aborted', cause: 'cancelled' },
  },
  'credentials-refused-while-provisioning': {
    input: { timeouts: { provisioning: '4s' } },
    play: async () => undefined,
    ends: { outcome: 'errored', cause: 'credentials' },
  },
};

/** What a scenario needs before its runner starts. */
export function prepare(name: string, { compute, ci }: Pick<Stage, 'compute' | 'ci'>): void {
  compute.probes = SCENARIOS[name]?.probes ?? true;
  if (SCENARIOS[name]?.rerun === true) ci.reruns = new FakeReruns();
  if (name !== 'credentials-refused-while-provisioning') return;
  ci.script.push({
    method: 'register',
    answer: new CiServerError('credentials', 'Bad credentials', { status: 401 }),
    repeat: true,
  });
}

async function phase({ run }: Stage, wanted: RunnerStatus['phase']): Promise<RunnerStatus> {
  return await run.reaches(wanted, (status) => status.phase === wanted);
}

/** Starts the command of an attempt. @returns its pod */
async function started({ compute, run }: Stage, attempt = 1): Promise<string> {
  const { pod = '' } = await run.reaches(
    `pod ${attempt}`,
    (status) => status.attempt === attempt && status.pod !== undefined,
  );
  compute.change(pod, {
    scheduled: true,
    node: 'node-1',
    startedAt: new Date().toISOString(),
    online: true,
  });
  await run.reaches('Busy', (status) => status.phase === 'Busy' && status.attempt === attempt);
  return pod;
}

/** Brings the runner of an attempt online. @returns its pod */
async function idle(stage: Stage, attempt = 1): Promise<string> {
  const { compute, ci, run } = stage;
  const { pod = '', runnerName } = await run.reaches(
    `pod ${attempt}`,
    (status) => status.attempt === attempt && status.pod !== undefined,
  );
  compute.start(pod);
  ci.connect(runnerName);
  await phase(stage, 'Idle');
  return pod;
}

/** Brings the runner of an attempt online, and gives it a job. @returns its pod */
async function busy(stage: Stage, attempt = 1): Promise<string> {
  const pod = await idle(stage, attempt);
  stage.ci.setBusy((await stage.run.status()).runnerName, true);
  stage.compute.startJob(pod);
  await phase(stage, 'Busy');
  return pod;
}

/** GitHub's side of the end of an ephemeral runner's job: it is unregistered before it exits. */
async function finishJob(
  { compute, ci, run }: Stage,
  pod: string,
  record?: SupervisorRecord,
): Promise<void> {
  ci.forget((await run.status()).runnerName);
  compute.endJob(pod);
  compute.end(pod, 0, { exit: { code: 0, oomKilled: false, ...(record && { record }) } });
}

const firstRunId = async ({ run }: Stage): Promise<string | undefined> =>
  (await run.handle.describe()).raw.workflowExecutionInfo?.firstRunId ?? undefined;
