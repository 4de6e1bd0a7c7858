/** What a job leaves behind says in the hooks' name that the runner is busy, and idle, and busy: a static runner is held by none of it. */
import { expect } from '@jest/globals';
import type { RunnerStatus } from '../../core/contract/index.ts';
import { ClusterWorld } from '../support/clusterWorld.ts';
import { cleanEnd } from '../support/demoLives.ts';
import { describeWithLab } from '../support/lab.ts';
import { together } from '../support/together.ts';

const FOLDER = 'folder="$(dirname "$ACTIONS_RUNNER_HOOK_JOB_STARTED")"';

/** In a session of its own, out of the runner's reach; slower than the file is looked at, and than the kubelet asks. Its last word is a lie. */
const LIAR = `${FOLDER}; echo begun; export folder
setsid sh -c 'for lie in 1 2 3 4 5 6; do sleep 2; echo started >>"$folder/jobs"; sleep 2; echo completed >>"$folder/jobs"; done; echo started >>"$folder/jobs"; touch "$folder/told"' >/dev/null 2>&1 &
sleep 4; [ -w "$folder/jobs" ] && echo finished`;

/** Until all lies are told, and the last of them has been looked at. */
const LONG_JOB = `${FOLDER}; echo begun; until [ -e "$folder/told" ]; do sleep 1; done; sleep 2; echo finished`;

const timesBusy = ({ phases }: RunnerStatus): number => phases.filter(({ phase }) => phase === 'Busy').length;

await describeWithLab('a job that leaves a liar behind', { temporal: true, nodes: 'kubelet' }, (lab) => {
  together(
    async () => await ClusterWorld.open(lab),
    {
      'a static runner is busy with its jobs, and with nothing else': async (world) => {
        const run = await world.start('lied', { ephemeral: false });
        const { pod } = await run.listens();
        // A job before the kubelet has asked for the first time may not be seen.
        await world.namespace.waitForPod(pod, ({ status }) => status?.containerStatuses?.[0]?.ready === true);
        const lying = await run.runJob(LIAR);
        await run.jobSays(lying, 'finished');
        await run.reaches('idle after its first job', (status) => timesBusy(status) > 0 && status.phase === 'Idle');
        const next = await run.runJob(LONG_JOB);
        await run.jobSays(next, 'finished');
        const idle = await run.reaches('idle after its second job', (status) => timesBusy(status) > 1 && status.phase === 'Idle');
        expect(timesBusy(idle)).toBe(2);
        await run.drain();
        expect(await run.ends()).toMatchObject({ outcome: 'succeeded', attempt: 1 });
      },
    },
    { afterwards: cleanEnd },
  );
});
