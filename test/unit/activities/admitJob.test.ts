/** How the admission of a job checks where its worker stores the files of steps. */
import { describe, expect, test } from '@jest/globals';
import { MockActivityEnvironment } from '@temporalio/testing';
import { admitJob } from '../../../activities/job/admitJob.ts';
import type { ActivityPorts } from '../../../activities/ports/activityPorts.ts';
import type { Compute } from '../../../activities/ports/compute.ts';
import type { JobInput } from '../../../core/contract/index.ts';
import type { JobSpec } from '../../../core/input/job.ts';
import { FakeCompute } from '../../support/fakeCompute.ts';

const HERE = {
  compute: 'kubernetes',
  cluster: 'c',
  installation: 'holdfast',
  namespace: 'ci',
} as const;

async function admit(
  job: Partial<JobInput>,
  stepStorage?: NonNullable<Compute['stepStorage']>,
): Promise<JobSpec> {
  const compute = Object.assign(new FakeCompute(), {
    location: async () => HERE,
    ...(stepStorage && { stepStorage }),
  });
  const input = { name: 'web', test: [{ name: 'unit', commands: 'make test' }], ...job };
  const given = { input, workflowId: 'job-web', runId: 'r' };
  return await new MockActivityEnvironment().run(
    async () => await admitJob({ compute } as unknown as ActivityPorts, given),
  );
}
const unit = (more: object): Partial<JobInput> => ({
  test: [{ name: 'unit', image: 'a', ...more }],
});

describe('a job without an artifact store', () => {
  test.each<[what: string, job: Partial<JobInput>, warned: boolean, logged: boolean]>([
    ['names neither', unit({ commands: 'make test' }), true, false],
    ['names ARTIFACT_DIR in a script', unit({ commands: 'cp x "$ARTIFACT_DIR/"' }), true, true],
    ['… in a command', unit({ command: ['sh', '-c', 'cp x ${ARTIFACT_DIR}'] }), true, true],
    ['… in a variable', unit({ commands: 'make', env: { OUT: '$(ARTIFACT_DIR)/x' } }), true, true],
    ['names another', unit({ commands: 'cp x "$MY_ARTIFACT_DIR_2/"' }), true, false],
  ])('%s', async (_what, job, warned, logged) => {
    const { warnings, loggedWarnings = [], claimLocation } = await admit(job);
    expect(claimLocation).toBeUndefined();
    const ofStore = expect.stringMatching(/ARTIFACT_DIR .*HOLDFAST_STORE_/);
    const someOfStore: unknown = expect.arrayContaining([ofStore]);
    expect(warnings).toEqual(warned ? someOfStore : []);
    expect(loggedWarnings).toEqual(logged ? [ofStore] : []);
  });

  test.each([
    ['in a script', unit({ commands: 'echo x >"$SHARED_DIR/x"' })],
    ['in a variable', unit({ commands: 'make', env: { CONFIG: '$(SHARED_DIR)/config' } })],
    ['in post', { post: [{ name: 'unit-2', commands: 'ls $SHARED_DIR' }] }],
  ])('that names SHARED_DIR %s is rejected', async (_what, job) => {
    await expect(admit(job)).rejects.toMatchObject({
      type: 'InvalidInput',
      message: expect.stringMatching(/SHARED_DIR.*HOLDFAST_STORE_VOLUME_CLAIM/),
    });
    for (const storage of ['store', 'claim'] as const)
      expect(await admit(job, storage)).toMatchObject({ name: 'web' });
  });

  test('with a store there is no warning', async () => {
    const spec = await admit(unit({ commands: 'cp x $ARTIFACT_DIR' }), 'store');
    expect(spec).toMatchObject({ warnings: [] });
    expect(spec).not.toHaveProperty('claimLocation');
  });
});

describe('a job with its own claim', () => {
  test.each([
    ['names neither', unit({ commands: 'make' }), false],
    ['names SHARED_DIR', unit({ commands: 'echo x >"$SHARED_DIR/x"' }), false],
    [
      'names ARTIFACT_DIR, which is deleted with the claim',
      unit({ commands: 'ls $ARTIFACT_DIR' }),
      true,
    ],
  ])('%s', async (_what, job, logged) => {
    const { warnings, loggedWarnings = [] } = await admit(job, 'claim');
    const ofClaim = expect.stringMatching(/ARTIFACT_DIR .*end of the job.*HOLDFAST_STORE_/);
    expect(warnings).toEqual(expect.arrayContaining([ofClaim]));
    expect(loggedWarnings).toEqual(logged ? [ofClaim] : []);
  });

  test('its location is the namespace of its steps', async () => {
    expect((await admit({ namespace: 'builds' }, 'claim')).claimLocation).toEqual({
      ...HERE,
      namespace: 'builds',
    });
    expect((await admit({}, 'claim')).claimLocation).toEqual(HERE);
  });
});
