/** The removal of a registration that somebody asks for by hand. */
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { WorkflowFailedError } from '@temporalio/client';
import { locationLabel } from '../../activities/compute/naming.ts';
import type { ScaleSets } from '../../activities/ports/scaleSets.ts';
import {
  DEREGISTRATION_WORKFLOW,
  type DeregistrationInput,
  type DeregistrationResult,
} from '../../core/contract/index.ts';
import { formatLocation } from '../../core/domain/location.ts';
import type { FakeCiServer } from '../support/fakeCiServer.ts';
import type { FakeCompute } from '../support/fakeCompute.ts';
import type { HoldfastWorld } from '../support/holdfastWorld.ts';
import { describeWithLab } from '../support/lab.ts';
import { memoryWorld } from '../support/memoryWorld.ts';

await describeWithLab('a removal by a user', { temporal: true }, (lab) => {
  let ci: FakeCiServer;
  let compute: FakeCompute;
  let world: HoldfastWorld;
  beforeAll(async () => {
    ({ ci, compute, world } = await memoryWorld(lab));
  });
  afterAll(async () => await world.close());

  async function remove(
    runner: DeregistrationInput['runner'],
    more: Partial<DeregistrationInput> = {},
  ): Promise<DeregistrationResult> {
    const input: DeregistrationInput = { organization: 'acme', runner, ...more };
    return (await world.client.workflow.execute(DEREGISTRATION_WORKFLOW, {
      workflowId: `deregistration-${randomUUID()}`,
      taskQueue: world.taskQueue,
      args: [input],
    })) as DeregistrationResult;
  }
  const name = (): string => `linux-${randomUUID().replaceAll('-', '').slice(0, 10)}`;

  test('of a runner of this location, by its name or by its ID', async () => {
    const here = locationLabel(formatLocation(await compute.location()));
    const [one, other, old] = [name(), name(), name()];
    ci.connect(one, false, ['linux', here]);
    const id = ci.connect(other, false, [here]);
    ci.connect(old, false);
    expect(await remove({ name: one })).toMatchObject({ outcome: 'removed' });
    expect(await remove({ name: other, id })).toMatchObject({ outcome: 'removed' });
    expect(await remove({ name: old })).toMatchObject({ outcome: 'removed' });
    expect(ci.registrations.size).toBe(0);
  });

  test('of a runner that the server lists only in its scale set', async () => {
    const runner = { name: name(), id: '4711' };
    const removed: string[] = [];
    ci.scaleSets = {
      runnerId: async (_scope, wanted) => (wanted === runner.name ? runner.id : undefined),
      removeRunner: async (_scope, id) => (removed.push(id), 'removed'),
    } satisfies Partial<ScaleSets> as unknown as ScaleSets;
    expect(await remove(runner)).toMatchObject({ outcome: 'absent' });
    expect(await remove(runner, { inScaleSet: true })).toMatchObject({ outcome: 'removed' });
    expect(removed).toEqual([runner.id]);
  });

  test('of a runner that an outdated list lacks: it is searched again before it counts as absent', async () => {
    const runner = { name: name() };
    ci.connect(runner.name, false);
    ci.script.push({ method: 'find', answer: 'absent' });
    expect(await remove(runner, { initialRetryInterval: '50ms' })).toMatchObject({
      outcome: 'removed',
    });
    expect(ci.registrations.size).toBe(0);
  });

  test('of a runner that two lists lack: absent', async () => {
    const before = ci.count('find');
    expect(await remove({ name: name() }, { initialRetryInterval: '50ms' })).toMatchObject({
      outcome: 'absent',
    });
    expect(ci.count('find') - before).toBe(2);
  });

  test.each<
    [what: string, theirs: string, labels: string[], asked: string | undefined, why: RegExp]
  >([
    [
      "somebody else's runner",
      'their-big-runner',
      [],
      undefined,
      /^their-big-runner is not a runner of Holdfast, by its name/,
    ],
    [
      'the id of another runner',
      'their-big-runner',
      [],
      'linux-0123456789',
      /^registration \d+ is not that of linux-0123456789 but of their-big-runner/,
    ],
    [
      'a runner of another place',
      'linux-0123456789',
      ['holdfast-ffffffffff'],
      undefined,
      /^linux-0123456789 is a runner of another place than this worker's .*ask a worker of that place$/,
    ],
  ])('%s stays, and the error has the reason', async (_what, theirs, labels, asked, why) => {
    const id = ci.connect(theirs, false, labels);
    const refused: unknown = await remove({ name: asked ?? theirs, id }).catch(
      (error: unknown) => error,
    );
    expect(refused).toBeInstanceOf(WorkflowFailedError);
    expect((refused as WorkflowFailedError).cause).toMatchObject({
      type: 'ForeignRegistration',
      nonRetryable: true,
      message: expect.stringMatching(why),
    });
    expect(ci.registrations.has(id)).toBe(true);
    ci.registrations.delete(id);
  });
});
