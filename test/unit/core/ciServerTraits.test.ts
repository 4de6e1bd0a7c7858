import { describe, expect, test } from '@jest/globals';
import {
  DEFAULT_JOB_LIMITS,
  registrationModeFor,
  removalEndsJob,
  type CiServerTraits,
} from '../../../core/domain/ciServerTraits.ts';
import { gitHubTraits } from '../../../activities/ciServers/github/gitHubCiServer.ts';
import { credentialError, traitsForRunner } from '../../../activities/runner/admit.ts';
import { admitSet } from '../../../activities/runnerSet/admitSet.ts';
import type { ActivityPorts } from '../../../activities/ports.ts';
import { FakeCiServer } from '../../support/fakeCiServer.ts';
import { FakeCompute } from '../../support/fakeCompute.ts';

const APP = gitHubTraits('app');

test.each<[refusesBusyRemoval: boolean, canDisable: boolean, ends: boolean]>([
  [true, true, false],
  [true, false, false],
  [false, true, false],
  [false, false, true],
])('removal (refused while busy: %s, can disable: %s) ends a job: %s', (refuses, can, ends) => {
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

test.each<[type: 'pat' | 'app', redelivers: boolean]>([
  ['pat', false],
  ['app', true],
])('a credential of the type %s can ask GitHub for deliveries again: %s', (type, redelivers) => {
  expect(gitHubTraits(type)).toMatchObject({ redelivers, jobLimits: DEFAULT_JOB_LIMITS });
});

describe('what admission takes from the traits', () => {
  test.each<[traits: Partial<CiServerTraits>, ephemeral: boolean, taken: object]>([
    [{}, true, { registrationMode: 'jit' }],
    [{}, false, { registrationMode: 'token' }],
    [{ singleUseRegistration: false }, true, { registrationMode: 'token' }],
    [{ refusesBusyRemoval: false }, true, { registrationMode: 'jit', removalEndsJob: true }],
    [{ refusesBusyRemoval: false, canDisable: true }, true, { registrationMode: 'jit' }],
  ])('%j, ephemeral: %s', (traits, ephemeral, taken) => {
    expect(traitsForRunner({ ...APP, ...traits }, ephemeral)).toEqual(taken);
  });

  test('a plain command has no CI server', () => {
    expect(traitsForRunner(undefined, true)).toEqual({});
  });

  test.each<[groups: boolean, runnerGroup: number | string | undefined, refused: boolean]>([
    [true, 'gpu', false],
    [false, 'gpu', true],
    [false, 7, true],
    [false, 1, false],
    [false, undefined, false],
  ])('groups: %s, runner group %s', (groups, runnerGroup, refused) => {
    const server = new FakeCiServer();
    server.traits = { ...server.traits, groups };
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
