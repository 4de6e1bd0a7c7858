import { describe, expect, test } from '@jest/globals';
import {
  registrationModeFor,
  removalEndsJob,
  type CiServerTraits,
} from '../../../core/domain/ciServerTraits.ts';
import { GITHUB_TRAITS } from '../../../activities/ciServers/github/gitHubCiServer.ts';
import { credentialError, traitsForRunner } from '../../../activities/runner/admit.ts';
import { admitSet } from '../../../activities/runnerSet/admitSet.ts';
import type { RunnerGroupRef } from '../../../core/domain/ciServer.ts';
import { omitUndefined } from '../../../core/domain/omitUndefined.ts';
import type { ActivityPorts } from '../../../activities/ports/activityPorts.ts';
import { FakeCiServer } from '../../support/fakeCiServer.ts';
import { FakeCompute } from '../../support/fakeCompute.ts';

test.each<[refusesBusyRemoval: boolean, canDisable: boolean, ends: boolean]>([
  [true, true, false],
  [true, false, false],
  [false, true, false],
  [false, false, true],
])('removal (rejected while busy: %s, can disable: %s) ends a job: %s', (refuses, can, ends) => {
  expect(removalEndsJob({ refusesBusyRemoval: refuses, canDisable: can })).toBe(ends);
});

test.each<[singleUseRegistration: boolean, ephemeral: boolean, mode: 'jit' | 'token']>([
  [true, true, 'jit'],
  [true, false, 'token'],
  [false, true, 'token'],
  [false, false, 'token'],
])('single-use registrations: %s, ephemeral: %s: %s', (singleUseRegistration, ephemeral, mode) => {
  expect(registrationModeFor({ singleUseRegistration }, ephemeral)).toBe(mode);
});

describe('what admission derives from the traits', () => {
  test.each<[traits: Partial<CiServerTraits>, ephemeral: boolean, taken: object]>([
    [{}, true, { registrationMode: 'jit' }],
    [{}, false, { registrationMode: 'token' }],
    [{ singleUseRegistration: false }, true, { registrationMode: 'token' }],
    [{ refusesBusyRemoval: false }, true, { registrationMode: 'jit', removalEndsJob: true }],
    [{ refusesBusyRemoval: false, canDisable: true }, true, { registrationMode: 'jit' }],
    [
      { runnerOutlivesRegistration: true },
      true,
      { registrationMode: 'jit', outlivesRegistration: true },
    ],
  ])('%j, ephemeral: %s', (traits, ephemeral, taken) => {
    expect(traitsForRunner({ ...GITHUB_TRAITS, ...traits }, ephemeral)).toEqual(taken);
  });

  test('a plain command has no CI server', () => {
    expect(traitsForRunner(undefined, true)).toEqual({});
  });

  test.each<
    [groups: CiServerTraits['groups'], runnerGroup: RunnerGroupRef | undefined, refused: boolean]
  >([
    [{ defaultId: '1' }, { name: 'gpu' }, false],
    [undefined, { name: 'gpu' }, true],
    [undefined, { id: '7' }, true],
    [undefined, 'default', false],
    [undefined, undefined, false],
  ])('groups: %j, runner group %j', (groups, runnerGroup, refused) => {
    const server = new FakeCiServer();
    const { groups: _groups, ...without } = server.traits;
    server.traits = { ...without, ...omitUndefined({ groups }) };
    const use = {
      credential: 'default',
      scope: { kind: 'organization', name: 'acme' },
      ...(runnerGroup === undefined ? {} : { runnerGroup }),
    } as const;
    expect(credentialError(server, use) !== undefined).toBe(refused);
  });

  test('a set keeps jobs for as long as its CI server does', () => {
    const ciServers = new FakeCiServer();
    const jobLimits = { queuedMs: 1, runningMs: 2 };
    ciServers.traits = { ...ciServers.traits, jobLimits };
    const ports = { compute: new FakeCompute(), ciServers } as unknown as ActivityPorts;
    const input = { name: 'linux', replicas: 1, template: { organization: 'acme' } };
    expect(admitSet(ports, { input }).spec.jobLimits).toEqual(jobLimits);
  });
});
