/** Only registrations of Holdfast are removed, for every caller: a foreign workflow may omit any field of its input. */
import { beforeEach, describe, expect, test } from '@jest/globals';
import { MockActivityEnvironment } from '@temporalio/testing';
import { locationLabel } from '../../../activities/compute/naming.ts';
import type { ActivityPorts } from '../../../activities/ports/activityPorts.ts';
import { removeRegistration } from '../../../activities/runner/removeRegistration.ts';
import type {
  RegistrationRemoval,
  RemoveRegistrationInput,
} from '../../../core/activities/index.ts';
import { formatLocation } from '../../../core/domain/location.ts';
import { FakeCiServer } from '../../support/fakeCiServer.ts';
import { FakeCompute } from '../../support/fakeCompute.ts';

let ci: FakeCiServer;
const compute = new FakeCompute();

beforeEach(() => {
  ci = new FakeCiServer();
});

async function remove(
  runner: RemoveRegistrationInput['runner'],
  inScaleSet?: true,
): Promise<RegistrationRemoval> {
  const input: RemoveRegistrationInput = {
    scope: { kind: 'organization', name: 'acme' },
    credential: 'default',
    runner,
    onBusy: 'return',
    credentialsRetryMs: 1_000,
    ...(inScaleSet && { inScaleSet }),
  };
  return await new MockActivityEnvironment({ attempt: 1 }).run(
    async () =>
      await removeRegistration({ compute, ciServers: ci } as unknown as ActivityPorts, input),
  );
}

async function expectForeign(removal: Promise<unknown>, why: string): Promise<void> {
  await expect(removal).rejects.toMatchObject({
    type: 'ForeignRegistration',
    nonRetryable: true,
    message: expect.stringContaining(why),
  });
}

function expectStays(id: string): void {
  expect(ci.registrations.has(id)).toBe(true);
  expect(ci.count('remove')).toBe(0);
}

describe('a foreign registration stays', () => {
  test.each<[what: string, name: string, labels: string[], why: string]>([
    ["somebody else's runner", 'their-big-runner', [], 'is not a runner of Holdfast'],
    [
      'a runner of another location',
      'linux-0123456789',
      ['holdfast-ffffffffff'],
      'is a runner of another place',
    ],
  ])('%s, by its ID and by its name', async (_what, name, labels, why) => {
    const id = ci.connect(name, false, labels);
    await expectForeign(remove({ name, id }), why);
    await expectForeign(remove({ name }), why);
    expectStays(id);
  });

  test('the ID of another runner', async () => {
    const id = ci.connect('their-big-runner', false, []);
    await expectForeign(
      remove({ name: 'linux-0123456789', id }),
      'is not that of linux-0123456789 but of their-big-runner',
    );
    expectStays(id);
  });
});

describe('a registration of Holdfast is removed', () => {
  const seen = (): string[] => ci.calls.map(({ method }) => method);

  test('after one read, however often it is retried while busy', async () => {
    const name = 'looked-at-0123456789';
    const id = ci.connect(name, true, [locationLabel(formatLocation(await compute.location()))]);
    ci.setBusy(name, true);
    expect([await remove({ name, id }), await remove({ name, id })]).toEqual([
      expect.objectContaining({ result: 'busy' }),
      expect.objectContaining({ result: 'busy' }),
    ]);
    ci.setBusy(name, false);
    expect(await remove({ name, id })).toMatchObject({
      result: 'removed',
      runnerId: id,
      attempts: 1,
    });
    expect(seen()).toEqual(['find', 'remove', 'remove', 'remove']);
  });

  test('with a read of each ID, even if the name is known', async () => {
    const name = 'again-0123456789';
    const id = ci.connect(name);
    expect(await remove({ name, id })).toMatchObject({ result: 'removed' });
    const theirs = ci.connect('their-big-runner');
    await expect(remove({ name, id: theirs })).rejects.toMatchObject({
      type: 'ForeignRegistration',
    });
  });

  test('or is absent: only the response to its removal shows it', async () => {
    expect(await remove({ name: 'gone-0123456789', id: '7' })).toMatchObject({
      result: 'absent',
      runnerId: '7',
    });
    expect(await remove({ name: 'gone-0123456789' })).toMatchObject({ result: 'unlisted' });
    expect(seen()).toEqual(['find', 'remove', 'find']);
  });
});

describe('at a server that removes busy runners', () => {
  const calls = (): string[] => ci.calls.map(({ method }) => method);

  test.each<[canDisable: boolean, calls: string[]]>([
    [false, ['find', 'find', 'find', 'remove']],
    [true, ['find', 'disable', 'find', 'disable', 'find', 'remove']],
  ])('the removal does not end a job (canDisable: %s)', async (canDisable, expected) => {
    ci.traits = { ...ci.traits, refusesBusyRemoval: false, canDisable };
    const name = `${canDisable ? 'disabled' : 'asked-about'}-0123456789`;
    const id = ci.connect(name);
    ci.setBusy(name, true);
    expect(await remove({ name, id })).toMatchObject({ result: 'busy', runnerId: id });
    expect(ci.registrations.has(id)).toBe(true);
    ci.setBusy(name, false);
    expect(await remove({ name, id })).toMatchObject({ result: 'removed' });
    expect(calls()).toEqual(expected);
  });
});

describe('a runner of a scale set, which the server does not list elsewhere', () => {
  const removed: string[] = [];
  beforeEach(() => {
    removed.length = 0;
    const ids: Record<string, string> = { 'gpu-0123456789': '8', 'their-big-runner': '9' };
    Object.assign(ci, {
      scaleSets: {
        runnerId: async (_scope: unknown, name: string) => ids[name],
        removeRunner: async (_scope: unknown, id: string) => {
          removed.push(id);
          return 'removed';
        },
      },
    });
  });

  test("is removed if its name is Holdfast's and it has this ID", async () => {
    expect(await remove({ name: 'gpu-0123456789', id: '8' }, true)).toMatchObject({
      result: 'removed',
    });
    expect(removed).toEqual(['8']);
  });

  test.each([
    ['the ID of another runner', 'gpu-0123456789', '9'],
    ['a name that is not registered', 'gpu-9876543210', '9'],
  ])('%s is absent', async (_what, name, id) => {
    expect(await remove({ name, id }, true)).toMatchObject({ result: 'absent' });
    expect(removed).toEqual([]);
  });

  test("another owner's runner stays", async () => {
    await expectForeign(
      remove({ name: 'their-big-runner', id: '9' }, true),
      'is not a runner of Holdfast',
    );
    expect(removed).toEqual([]);
  });
});
