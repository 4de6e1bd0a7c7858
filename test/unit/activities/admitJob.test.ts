/** What the admission of a job says of a worker without an artifact store. */
import { describe, expect, test } from '@jest/globals';
import { admitJob } from '../../../activities/job/admitJob.ts';
import type { ActivityPorts } from '../../../activities/ports.ts';
import type { JobInput } from '../../../core/contract/index.ts';
import type { JobSpec } from '../../../core/input/job.ts';
import { FakeCompute } from '../../support/fakeCompute.ts';

function admit(job: Partial<JobInput>, hasArtifactStore: boolean): JobSpec {
  const compute = Object.assign(new FakeCompute(), { hasArtifactStore });
  const input = { name: 'web', test: [{ name: 'unit', commands: 'make test' }], ...job };
  return admitJob({ compute } as unknown as ActivityPorts, {
    input,
    workflowId: 'job-web',
    runId: 'r',
  });
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
  ])('%s', (_what, job, warned, logged) => {
    const { warnings, loggedWarnings = [] } = admit(job, false);
    const ofStore = expect.stringMatching(/ARTIFACT_DIR .*HOLDFAST_STORE_/);
    const someOfStore: unknown = expect.arrayContaining([ofStore]);
    expect(warnings).toEqual(warned ? someOfStore : []);
    expect(loggedWarnings).toEqual(logged ? [ofStore] : []);
  });

  test.each([
    ['in a script', unit({ commands: 'echo x >"$SHARED_DIR/x"' })],
    ['in a variable', unit({ commands: 'make', env: { CONFIG: '$(SHARED_DIR)/config' } })],
    ['in post', { post: [{ name: 'unit-2', commands: 'ls $SHARED_DIR' }] }],
  ])('that names SHARED_DIR %s is rejected', (_what, job) => {
    expect(() => admit(job, false)).toThrow(/SHARED_DIR.*HOLDFAST_STORE_VOLUME_CLAIM/);
    expect(() => admit(job, true)).not.toThrow();
  });

  test('with a store there is nothing to say', () => {
    expect(admit(unit({ commands: 'cp x $ARTIFACT_DIR' }), true)).toMatchObject({ warnings: [] });
  });
});
