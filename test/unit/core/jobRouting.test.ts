import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import {
  JobRouter,
  RerouteTargets,
  type RoutableSet,
  type RoutedJob,
} from '../../../core/domain/jobRouting.ts';
import { omitUndefined } from '../../../core/domain/omitUndefined.ts';
import { normalizeLabels } from '../../../activities/ciServers/normalizeLabels.ts';
import { withNormalizedLabels } from '../../../activities/runnerSet/normalizedRouting.ts';
import type { ScopeKind, SetRoutingInfo } from '../../../core/contract/index.ts';

const set = (
  name: string,
  scope: string,
  labels: string[],
  scopeKind: ScopeKind = scope.includes('/') ? 'repository' : 'organization',
): RoutableSet => ({
  workflowId: `set-${name}`,
  routing: withNormalizedLabels({ labels, scope, scopeKind, ciServer: 'github' }),
});
const groupSet = (name: string, scope: string, labels: string[]): RoutableSet => {
  const { workflowId, routing } = set(name, scope, labels);
  return { workflowId, routing: { ...routing, groupJobs: true } };
};
/** More labels than a runner can have. */
const MANY = Array.from({ length: 101 }, (_none, index) => `linux-${index}`);
const SETS: RoutableSet[] = [
  set('many', 'acme/many', MANY),
  set('plain', 'acme', ['self-hosted', 'linux']),
  set('gpu', 'acme', ['self-hosted', 'Linux', 'GPU']),
  set('app', 'acme/app', ['linux']),
  {
    ...set('group-7', 'beta', ['linux']),
    routing: {
      labels: ['linux'],
      scope: 'beta',
      scopeKind: 'organization',
      ciServer: 'github',
      group: { id: '7' },
    },
  },
  {
    ...set('group-3', 'beta', ['linux']),
    routing: {
      labels: ['linux'],
      scope: 'beta',
      scopeKind: 'organization',
      ciServer: 'github',
      group: { id: '3' },
    },
  },
  set('big', 'big', ['linux'], 'enterprise'),
  set('unlabelled', 'gamma', ['self-hosted']),
  set('grouped-app', 'gamma/app', ['linux']),
  groupSet('grouped', 'gamma', ['linux', 'gpu']),
];

describe('the set for a job', () => {
  test.each<
    [
      what: string,
      repository: string,
      labels: string[],
      enterprise: string | undefined,
      chosen: string | undefined,
    ]
  >([
    [
      'every label but self-hosted counts',
      'acme/web',
      ['self-hosted', 'linux'],
      undefined,
      'plain',
    ],
    ['the label self-hosted is optional', 'acme/web', ['linux'], undefined, 'plain'],
    [
      'labels are compared without case',
      'ACME/Web',
      ['SELF-HOSTED', 'gpu', 'LINUX'],
      undefined,
      'gpu',
    ],
    [
      'of sets with equal labels, the one with the narrower scope',
      'acme/app',
      ['linux'],
      undefined,
      'app',
    ],
    [
      "fewest labels beyond the job's before the narrower scope",
      'acme/app',
      ['linux', 'gpu'],
      undefined,
      'gpu',
    ],
    [
      'otherwise the set of the group with the lowest id',
      'beta/x',
      ['linux'],
      undefined,
      'group-3',
    ],
    ['a label that no set has', 'acme/web', ['linux', 'arm64'], undefined, undefined],
    ["GitHub's own runners", 'acme/web', ['ubuntu-latest'], undefined, undefined],
    ['an unknown owner', 'other/web', ['linux'], undefined, undefined],
    ['an owner whose name has the same prefix', 'acme-labs/web', ['linux'], undefined, undefined],
    ['another repository of the same name', 'other/app', ['linux'], undefined, undefined],
    ['an enterprise', 'other/web', ['linux'], 'BIG', 'big'],
    [
      "an enterprise with an organization's name is not the organization",
      'other/web',
      ['linux'],
      'acme',
      undefined,
    ],
    [
      "an organization with the enterprise's name is not the enterprise",
      'big/web',
      ['linux'],
      undefined,
      undefined,
    ],
    [
      'a job with only self-hosted matches any set',
      'gamma/x',
      ['self-hosted'],
      undefined,
      'unlabelled',
    ],
    [
      'a job with only self-hosted matches a set with more labels',
      'acme/web',
      ['self-hosted'],
      undefined,
      'plain',
    ],
    [
      'a job without labels (it names a group) matches no set',
      'acme/app',
      [],
      undefined,
      undefined,
    ],
    ['a job without labels matches a set with groupJobs', 'gamma/x', [], undefined, 'grouped'],
    [
      'a job without labels does not match a narrower set without groupJobs',
      'gamma/app',
      [],
      undefined,
      'grouped',
    ],
    ['a set with groupJobs also compares labels', 'gamma/x', ['arm64'], undefined, undefined],
    ['a repeated label counts once', 'acme/web', ['linux', 'Linux'], undefined, 'plain'],
    ['more labels than a runner can have', 'acme/many', MANY, undefined, undefined],
  ])('%s', (_what, repository, labels, enterprise, chosen) => {
    const asked = {
      jobId: '1',
      runAttempt: 1,
      repository,
      labels: normalizeLabels('github', labels),
    };
    for (const sets of [SETS, SETS.toReversed()])
      expect(
        new JobRouter(sets).setFor(asked, { ciServer: 'github', ...omitUndefined({ enterprise }) })
          ?.workflowId,
      ).toBe(chosen && `set-${chosen}`);
  });
});

test('every job of Gitea belongs to the single enterprise of its server', () => {
  const instance = set('instance', 'instance', ['linux'], 'enterprise');
  const ofGitea = { ...instance, routing: { ...instance.routing, ciServer: 'gitea' as const } };
  const router = new JobRouter([ofGitea, instance]);
  const job = { jobId: '1', runAttempt: 1, repository: 'acme/app', labels: ['linux'] };
  expect(router.setFor(job, { ciServer: 'gitea' })).toBe(ofGitea);
  expect(router.setFor(job, { ciServer: 'github' })).toBeUndefined();
});

const equals = (count: number, more: Partial<SetRoutingInfo> = {}): RoutableSet[] =>
  Array.from({ length: count }, (_none, index) => ({
    workflowId: `set-linux-${index}`,
    routing: {
      labels: ['linux'],
      scope: 'acme',
      scopeKind: 'organization',
      ciServer: 'github',
      ...more,
    },
  }));
const job = (jobId: number, runAttempt = 1): RoutedJob => ({
  jobId: String(jobId),
  runAttempt,
  repository: 'acme/app',
  labels: ['linux'],
});
/** How many of these jobs each set has. */
function shares(sets: readonly RoutableSet[], jobs: readonly RoutedJob[]): number[] {
  const routing = new JobRouter(sets);
  const count = new Map(sets.map(({ workflowId }) => [workflowId, 0]));
  for (const one of jobs) {
    const home = routing.setFor(one, { ciServer: 'github' })?.workflowId ?? '';
    count.set(home, (count.get(home) ?? 0) + 1);
  }
  return [...count.values()];
}

describe('sets with equal labels and scope', () => {
  test.each([
    [2, 4_000],
    [20, 10_000],
    [200, 8_000],
  ])('%d sets share %d jobs, and each gets some', (sets, jobs) => {
    const each = jobs / sets;
    const has = shares(
      equals(sets),
      Array.from({ length: jobs }, (_none, index) => job(40_000_000_000 + index)),
    );
    // A fair random assignment exceeds 5.5 standard deviations once in 26 million times.
    const spread = 5.5 * Math.sqrt(each);
    expect(Math.min(...has)).toBeGreaterThan(each - spread);
    expect(Math.max(...has)).toBeLessThan(each + spread);
  });

  test('consecutive ids, and equal ids of one workflow run, are spread evenly', () => {
    for (const step of [1, 2, 20, 64, 1_000, 65_536]) {
      const has = shares(
        equals(20),
        Array.from({ length: 4_000 }, (_none, index) => job(index * step)),
      );
      expect(Math.min(...has)).toBeGreaterThan(100);
      expect(Math.max(...has)).toBeLessThan(300);
    }
  });

  const ids = fc.uniqueArray(fc.stringMatching(/^[a-z0-9]{1,12}$/), {
    minLength: 1,
    maxLength: 30,
  });
  const someJob = fc
    .tuple(fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER }), fc.integer({ min: 1, max: 9 }))
    .map(([jobId, runAttempt]) => job(jobId, runAttempt));
  const named = (names: readonly string[]): RoutableSet[] =>
    names.map((name) => ({
      workflowId: `set-${name}`,
      routing: { labels: ['linux'], scope: 'acme', scopeKind: 'organization', ciServer: 'github' },
    }));

  test('every replica chooses the same set, independent of the order of its list', () => {
    fc.assert(
      fc.property(ids, someJob, fc.func(fc.integer()), (names, one, order) => {
        const shuffled = named(names).toSorted((a, b) => order(a.workflowId) - order(b.workflowId));
        expect(new JobRouter(shuffled).setFor(one, { ciServer: 'github' })).toEqual(
          new JobRouter(named(names)).setFor(one, { ciServer: 'github' }),
        );
      }),
    );
  });

  test('adding or removing a set moves no job between the others', () => {
    fc.assert(
      fc.property(ids, someJob, fc.nat(), (names, one, which) => {
        const gone = `set-${names[which % names.length] ?? ''}`;
        const before = new JobRouter(named(names)).setFor(one, { ciServer: 'github' })?.workflowId;
        const left = named(names).filter(({ workflowId }) => workflowId !== gone);
        const after = new JobRouter(left).setFor(one, { ciServer: 'github' })?.workflowId;
        const others = left.length === 0 ? [undefined] : left.map(({ workflowId }) => workflowId);
        expect(before === gone ? others : [before]).toContain(after);
      }),
    );
  });

  test('sets with equally many additional labels share jobs, too', () => {
    const sets = [set('one', 'acme', ['linux', 'one']), set('two', 'acme', ['linux', 'two'])];
    expect(
      Math.min(
        ...shares(
          sets,
          Array.from({ length: 100 }, (_none, index) => job(index)),
        ),
      ),
    ).toBeGreaterThan(25);
  });

  test('sets whose names have the same hash share the jobs', () => {
    const sets = ['linux-149599', 'linux-312382'].map((name) => set(name, 'acme', ['linux']));
    expect(
      Math.min(
        ...shares(
          sets,
          Array.from({ length: 100 }, (_none, index) => job(index)),
        ),
      ),
    ).toBeGreaterThan(25);
  });

  test('sets of another CI server and of plain commands are never chosen', () => {
    const named = set('named', 'acme', ['linux']);
    const { ciServer: _server, ...commands } = named.routing;
    const elsewhere = [
      { ...named, routing: { ...named.routing, ciServer: 'gitea' as 'github' } },
      { workflowId: 'set-commands', routing: commands },
    ];
    const origin = { ciServer: 'github' } as const;
    expect(new JobRouter(elsewhere).setFor(job(1), origin)).toBeUndefined();
    expect(new JobRouter([...elsewhere, named]).setFor(job(1), origin)).toBe(named);
  });

  test('a set at its capacity keeps its share: it reroutes the jobs that it cannot serve', () => {
    const jobs = Array.from({ length: 100 }, (_none, index) => job(index));
    expect(shares(equals(5, { atCapacity: true }), jobs)).toEqual(shares(equals(5), jobs));
  });
});

describe('the set that a job is rerouted to', () => {
  const self: RoutableSet = {
    workflowId: 'set-self',
    routing: { labels: ['linux'], scope: 'acme/app', scopeKind: 'repository', ciServer: 'github' },
  };
  const other = (name: string, more: Partial<SetRoutingInfo> = {}): RoutableSet => ({
    workflowId: `set-${name}`,
    routing: { ...self.routing, ...more },
  });
  const org: Partial<SetRoutingInfo> = {
    scope: 'Acme',
    scopeKind: 'organization',
    ciServer: 'github',
  };

  test.each<[what: string, others: RoutableSet[], chosen: string | undefined]>([
    ['not itself', [self], undefined],
    ['a set with equal labels and scope', [other('equal', { labels: ['linux'] })], 'equal'],
    ['not a set at its capacity', [other('equal', { atCapacity: true })], undefined],
    [
      'not a set with more labels, which other jobs need',
      [other('gpu', { labels: ['linux', 'gpu'] })],
      undefined,
    ],
    ['not a set with fewer labels', [other('any', { labels: [] })], undefined],
    [
      'not a set of another runner group, which may not permit the repository',
      [other('group', { group: { id: '7' } })],
      undefined,
    ],
    [
      'not a set of another CI server',
      [other('gitea', { ciServer: 'gitea' as 'github' })],
      undefined,
    ],
    [
      'not a set with groupJobs, if this one does not have it',
      [other('grouped', { groupJobs: true })],
      undefined,
    ],
    ['not a set of another repository', [other('other', { scope: 'acme/web' })], undefined],
    ['the set of the organization', [other('wide', org)], 'wide'],
    ['an equal set before that of the organization', [other('wide', org), other('equal')], 'equal'],
    [
      'the set of the organization, if the equal one is at its capacity',
      [other('wide', org), other('equal', { atCapacity: true })],
      'wide',
    ],
    [
      'not the set of another organization',
      [other('wide', { scope: 'acme-labs', scopeKind: 'organization', ciServer: 'github' })],
      undefined,
    ],
  ])('%s', (_what, others, chosen) => {
    expect(new RerouteTargets(self, others).next({ jobId: '1', runAttempt: 1 })?.workflowId).toBe(
      chosen && `set-${chosen}`,
    );
  });

  test('a job of a set of the organization is not rerouted to a set of one repository', () => {
    expect(new RerouteTargets(other('wide', org), [self]).size).toBe(0);
  });

  test('a set that ends reroutes its jobs to a set at its capacity if there is no other', () => {
    const substitutes = new RerouteTargets(self, [other('equal', { atCapacity: true })]);
    expect([
      substitutes.size,
      substitutes.next({ jobId: '1', runAttempt: 1 })?.workflowId,
      substitutes.next({ jobId: '1', runAttempt: 1 }, { includeFull: true })?.workflowId,
    ]).toEqual([1, undefined, 'set-equal']);
  });

  test('a set that ends is never chosen, but still gets the events of its jobs', () => {
    const substitutes = new RerouteTargets(self, [
      other('ending', { atCapacity: true, draining: true }),
      other('idle', { draining: true }),
    ]);
    expect([
      substitutes.size,
      substitutes.next({ jobId: '1', runAttempt: 1 }, { includeFull: true }),
      substitutes.ids(),
    ]).toEqual([0, undefined, ['set-ending', 'set-idle']]);
  });

  test('jobs that a set cannot serve are spread over all others', () => {
    const others = Array.from({ length: 10 }, (_none, index) => other(`linux-${index}`));
    const substitutes = new RerouteTargets(self, others);
    const chosen = Array.from(
      { length: 200 },
      (_none, jobId) => substitutes.next({ jobId: String(jobId), runAttempt: 1 })?.workflowId,
    );
    expect(new Set(chosen).size).toBe(10);
  });
});
