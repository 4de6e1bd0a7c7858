import { describe, expect, test } from '@jest/globals';
import { Jobs } from './jobs.ts';
import { Registrations } from './registrations.ts';
import { labelsCover, scopeServes } from './scope.ts';

test.each<[string[], string[], boolean]>([
  [['self-hosted', 'Linux', 'gpu'], ['self-hosted', 'GPU'], true],
  [['self-hosted'], ['self-hosted', 'gpu'], false],
  [['gpu'], ['self-hosted', 'gpu'], false],
  [['gpu'], [], true],
])('runner %j covers job %j: %s', (runner, job, covers) => {
  expect(labelsCover(runner, job)).toBe(covers);
});

test.each<[string, string, Record<string, string[]>, boolean]>([
  ['orgs/acme', 'acme/widgets', {}, true],
  ['orgs/Acme', 'acme/widgets', {}, true],
  ['orgs/acme', 'acme2/widgets', {}, false],
  ['repos/acme/widgets', 'acme/widgets', {}, true],
  ['repos/acme/widgets', 'acme/gadgets', {}, false],
  ['enterprises/big', 'acme/widgets', {}, true],
  ['enterprises/big', 'acme/widgets', { big: ['acme'] }, true],
  ['enterprises/big', 'acme/widgets', { big: ['other'] }, false],
])('runners of %s serve %s with %j: %s', (scope, repo, enterprises, serves) => {
  expect(scopeServes(scope, repo, enterprises)).toBe(serves);
});

describe('registrations', () => {
  const request = {
    name: 'one',
    scope: 'orgs/acme',
    groupId: 1,
    labels: ['self-hosted', 'gpu'],
    ephemeral: true,
    jit: true,
  };

  test('a name is taken within its scope only, in any case', () => {
    const registrations = new Registrations();
    expect(registrations.add(request)?.id).toBe(1);
    expect(registrations.add({ ...request, name: 'ONE' })).toBeUndefined();
    expect(registrations.add({ ...request, scope: 'orgs/other' })?.id).toBe(2);
    expect(registrations.list('orgs/acme').map(({ id }) => id)).toEqual([1]);
  });

  test('a removed one frees its name; one with a job stays known to its runner', () => {
    const registrations = new Registrations();
    const first = registrations.add(request);
    if (!first) throw new Error('not added');
    first.jobId = 5;
    registrations.remove(first);
    expect(registrations.byId('orgs/acme', 1)).toBeUndefined();
    expect(registrations.byCredential(first.credential)).toBe(first);
    expect(registrations.add(request)?.id).toBe(2);
    registrations.forget(first);
    expect(registrations.byCredential(first.credential)).toBeUndefined();
  });

  test('survive a restart with the next id', () => {
    const before = new Registrations();
    before.add(request);
    const after = new Registrations();
    after.restore(structuredClone(before.dump()));
    expect(after.list('orgs/acme')).toEqual(before.list('orgs/acme'));
    expect(after.add({ ...request, name: 'two' })?.id).toBe(2);
  });
});

describe('jobs', () => {
  test('first in, first out; one that was not started is the oldest again', () => {
    const jobs = new Jobs();
    const [first, second] = [jobs.queue({ repo: 'a/b' }), jobs.queue({ repo: 'a/b' })];
    expect(jobs.firstQueued(() => true)).toBe(first);
    jobs.dequeue(first);
    expect(jobs.firstQueued(() => true)).toBe(second);
    jobs.requeue(first);
    expect(jobs.firstQueued(() => true)).toBe(first);
    expect(jobs.firstQueued((job) => job.id === second.id)).toBe(second);
  });

  test.each(['widgets', 'a/b/c', ''])('repo %j is refused', (repo) => {
    expect(() => new Jobs().queue({ repo })).toThrow('owner/repo');
  });
});
