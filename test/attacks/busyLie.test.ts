/** What a job leaves behind works against its runner for ever: says in the hooks' name and in the runner's log that it is busy, or stops its supervisor. A static runner is not held by it. */
import { expect } from '@jest/globals';
import type { RunnerStatus } from '../../core/contract/index.ts';
import { ClusterWorld } from '../support/clusterWorld.ts';
import { cleanEnd } from '../support/demoRunners.ts';
import { describeWithLab } from '../support/lab.ts';
import { inContainer } from '../support/podLog.ts';
import { together } from '../support/together.ts';
import { until } from '../support/until.ts';

/** More than the file, which is looked at every half second, and the kubelet, which asks every second, can miss. */
const LIES = 6;

/** Into every output that there is in the pod. What nobody reads is opened all the same, and does not block. */
const FORGED =
  'for log in /proc/[0-9]*/fd/1; do date -u +"%Y-%m-%d %H:%M:%SZ: Running job: lied" 1<>"$log"; done';

/** The liar is in a session of its own, out of the runner's reach, and counts. The job itself goes on until it is let go. */
const LIAR = `export folder="$(dirname "$ACTIONS_RUNNER_HOOK_JOB_STARTED")"; echo begun; echo "in $folder"
setsid sh -c 'n=0; while :; do echo started >>"$folder/jobs"; ${FORGED}; n=$((n+1)); echo $n >"$folder/lies"; sleep 1; done' </dev/null >/dev/null 2>&1 &
until [ -e /tmp/let-go ] && [ -s "$folder/lies" ]; do sleep 0.2; done; echo finished`;

/** The supervisor runs as the runner's own user: a job can stop it, and then does not end. */
const STOPPER = `for each in /proc/[0-9]*; do tr '\\0' ' ' <$each/cmdline 2>/dev/null | grep -q '[/]node .*supervisor' && pid="$pid $(basename $each)"; done
kill -STOP $pid && echo begun; sleep 600`;

const timesBusy = ({ phases }: Pick<RunnerStatus, 'phases'>): number =>
  phases.filter(({ phase }) => phase === 'Busy').length;

await describeWithLab(
  'a job that leaves a hostile process behind',
  { temporal: true, nodes: 'kubelet' },
  (lab) => {
    together(
      async () => await ClusterWorld.open(lab),
      {
        'its static runner is idle when the job has ended, stays so, and is drained': async (
          world,
        ) => {
          const run = await world.start('lied', { ephemeral: false });
          const { pod } = await run.listens();
          // A job before the kubelet has asked for the first time may not be seen.
          await world.namespace.waitForPod(
            pod,
            ({ status }) => status?.containerStatuses?.[0]?.ready === true,
          );
          const lying = await run.runJob(LIAR);
          await run.reaches('busy', ({ phase }) => phase === 'Busy');
          await run.letGo();
          await run.waitForLine(lying, 'finished');
          const [folder = ''] = run
            .jobOutput(lying)
            .flatMap((line) => /^in (\/.*)$/.exec(line)?.[1] ?? []);
          const lies = async (): Promise<number> =>
            Number(await inContainer(world.namespace, pod, `cat '${folder}/lies'`));
          await run.reaches(
            'idle after its job',
            (status) => timesBusy(status) > 0 && status.phase === 'Idle',
          );
          let before = 0;
          await until('a lie', async () => (before = await lies()) > 0);
          await until('more lies', async () => (await lies()) >= before + LIES);
          const status = await run.status();
          expect({ phase: status.phase, timesBusy: timesBusy(status) }).toEqual({
            phase: 'Idle',
            timesBusy: 1,
          });
          await run.drain();
          const result = await run.ends();
          expect(result).toMatchObject({ outcome: 'succeeded', attempt: 1 });
          expect(timesBusy(result)).toBe(1);
        },
        'a job that stops its supervisor looks busy, and has no more than a job has': async (
          world,
        ) => {
          const run = await world.start('stopped', {
            ephemeral: false,
            timeouts: { jobTimeout: '10s' },
          });
          const { pod } = await run.listens();
          await world.namespace.waitForPod(
            pod,
            ({ status }) => status?.containerStatuses?.[0]?.ready === true,
          );
          await run.runJob(STOPPER);
          expect(await run.ends()).toMatchObject({ outcome: 'aborted', cause: 'run_timeout' });
        },
      },
      { afterwards: cleanEnd },
    );
  },
);
