/** Explanations from facts: a row for each cause, each state, and each reason for which a set serves a job. */
import { describe, expect, test } from '@jest/globals';
import {
  MAX_SET_JOBS,
  WAIT_CAUSES,
  type RunnerPhase,
  type RunnerStatus,
  type ServingSet,
  type SetJobStatus,
  type SetRoutingInfo,
  type WaitCause,
} from '../../../core/contract/index.ts';
import { FAILURE_TYPES } from '../../../core/activities/failureTypes.ts';
import type { RoutableSet } from '../../../core/domain/jobRouting.ts';
import { explain } from '../../../core/why/explain.ts';
import { currentRecord, recordsIn, servingSet } from '../../../core/why/servingSet.ts';
import type {
  JobFacts,
  JobLabels,
  JobQuestion,
  PendingFact,
  RunFacts,
  RunnerFacts,
  SetFacts,
  WhyFacts,
} from '../../../core/why/facts.ts';

const SINCE = '2026-01-01T00:00:00.000Z';
const UNTIL = '2026-01-01T00:05:00.000Z';
const UNPOLLED = [{ taskQueue: 'holdfast', fix: 'start a worker' }];

function statusIn(phase: RunnerPhase): RunnerStatus {
  return {
    phase,
    runnerName: 'linux-a',
    attempt: 1,
    unregisterAttempts: 0,
    phases: [{ phase, at: SINCE }],
    replacements: [],
  };
}
const runner = (more: Partial<RunnerFacts> = {}): RunnerFacts => ({
  id: 'runner-linux-a',
  unpolled: [],
  pending: [],
  status: statusIn('Provisioning'),
  ...more,
});
const pending = (more: Partial<PendingFact> = {}): PendingFact => ({
  type: 'provision',
  scheduled: true,
  attempt: 2,
  nextRetryAt: UNTIL,
  ...more,
});
const failing = (failureType: string): RunnerFacts =>
  runner({ pending: [pending({ failureType, lastFailure: `words of ${failureType}` })] });
const pod = (more: Partial<NonNullable<RunnerFacts['pod']>>): RunnerFacts =>
  runner({ pod: { name: 'pod-a', scheduled: true, createdAt: SINCE, ...more } });

const COUNTS = { starting: 0, idle: 0, busy: 0, draining: 0 };
const set = (more: Partial<SetFacts> = {}): SetFacts => ({
  id: 'set-linux',
  name: 'linux',
  unpolled: [],
  pending: [],
  listener: [],
  starting: [],
  status: { runnerCounts: COUNTS },
  ...more,
});
const waitingFor = (...causes: WaitCause[]): SetFacts =>
  set({
    status: {
      runnerCounts: COUNTS,
      waits: causes.map((cause) => ({ cause, text: `words of ${cause}`, until: UNTIL })),
    },
  });

const QUEUED: SetJobStatus = {
  jobId: '7',
  runAttempt: 1,
  repository: 'acme/app',
  state: 'queued',
  since: SINCE,
};
const SERVED: ServingSet = { id: 'set-linux', labels: ['linux'], because: 'reported' };
const job = (
  facts: SetFacts,
  more: Partial<JobFacts & { record: SetJobStatus }> = {},
): WhyFacts => ({
  kind: 'job',
  jobId: '7',
  known: [{ set: 'set-linux', job: more.record ?? QUEUED }],
  sets: [],
  unknownSets: [],
  silentSets: 0,
  unanswered: [],
  servedBy: SERVED,
  set: facts,
  ...more,
});
const run = (more: Partial<RunFacts> = {}): WhyFacts => ({
  kind: 'run',
  runId: '1',
  repository: 'acme/app',
  known: [{ set: 'set-linux', job: QUEUED }],
  sets: [waitingFor('max')],
  unreadSets: 0,
  silentSets: 0,
  unanswered: [],
  ...more,
});
/** Gitea compares labels with case, GitHub without. */
const wanted = (...given: string[]): JobLabels => ({
  given,
  normalized: { github: given.map((label) => label.toLowerCase()), gitea: given },
});
const routable = (name: string, more: Partial<SetRoutingInfo> = {}): RoutableSet => ({
  workflowId: `set-${name}`,
  routing: {
    ciServer: 'github',
    labels: ['linux'],
    scope: 'acme',
    scopeKind: 'organization',
    ...more,
  },
});
/** A job that no set knows. */
const unheard = (more: Partial<JobFacts>): WhyFacts => ({
  kind: 'job',
  jobId: '7',
  repository: 'acme/app',
  labels: wanted('linux'),
  known: [],
  sets: [],
  unknownSets: [],
  silentSets: 0,
  unanswered: [],
  ...more,
});

const silent = set({ unpolled: UNPOLLED, status: undefined } as never);
const idleRunner = runner({ status: statusIn('Idle') });
/** A busy runner, and a wait for its pod that has failed once. */
const recovered = (more: Partial<PendingFact>): RunnerFacts =>
  runner({
    status: statusIn('Busy'),
    pending: [
      pending({ type: 'awaitPod', failureType: FAILURE_TYPES.computeUnavailable, ...more }),
    ],
  });
/** A runner that is drained after it was idle or busy. */
const draining = (before: RunnerPhase, itsJob?: string): RunnerFacts =>
  runner({
    status: {
      ...statusIn('Draining'),
      phases: [
        { phase: before, at: SINCE },
        { phase: 'Draining', at: SINCE },
      ],
      ...(itsJob === undefined ? {} : { job: itsJob }),
    },
  });
/** Facts, and the causes that follow from them, the decisive one first. */
const ROWS: readonly (readonly [WhyFacts, WaitCause, ...WaitCause[]])[] = [
  [{ kind: 'set', ...set({ paused: { since: SINCE, text: 'by ops' } }) }, 'workflow_paused'],
  [job(set({ paused: { text: 'by ops' } })), 'workflow_paused'],
  [{ kind: 'runner', ...runner({ unpolled: UNPOLLED }) }, 'no_worker'],
  [unheard({ silentSets: 1, unanswered: [silent] }), 'no_worker'],
  [{ kind: 'set', ...set({ status: undefined } as never) }, 'no_answer'],
  [job(set({ status: undefined, notAdmitted: 'waits' } as never)), 'not_admitted'],
  [{ kind: 'runner', ...runner({ status: statusIn('Requested') }) }, 'not_admitted'],
  [job(waitingFor('max', 'deleting')), 'deleting', 'max'],
  [job(waitingFor('paused')), 'paused'],
  [job(waitingFor('breaker')), 'breaker'],
  [job(waitingFor('runner_hours')), 'runner_hours'],
  [job(waitingFor('limit'), { record: { ...QUEUED, limited: true } }), 'limit'],
  [job(waitingFor('limit', 'max')), 'max'],
  [job(waitingFor('scale_set', 'capacity')), 'capacity', 'scale_set'],
  [job(waitingFor('max', 'schedule')), 'schedule', 'max'],
  [job(waitingFor('schedule')), 'starting'],
  [
    job({
      ...waitingFor('scale_set'),
      listener: [pending({ failureType: FAILURE_TYPES.conflict, lastFailure: 'held' })],
    }),
    'session_held',
  ],
  [job(waitingFor('scale_set')), 'scale_set'],
  [job(waitingFor('runner_list')), 'runner_list'],
  [job(waitingFor('recreation_guard')), 'recreation_guard'],
  [
    {
      kind: 'set',
      ...waitingFor('scale_down', 'rollout', 'reroute', 'queued_long', 'drain_unconfirmed'),
    },
    'rollout',
    'scale_down',
    'drain_unconfirmed',
    'reroute',
    'queued_long',
  ],
  [job(waitingFor('rollout', 'scale_down', 'queued_long')), 'starting'],
  [unheard({ sets: [routable('mac', { labels: ['mac'] })] }), 'no_set'],
  [unheard({ servedBy: SERVED, set: set() }), 'not_reported'],
  [unheard({ servedBy: SERVED, set: waitingFor('paused') }), 'paused', 'not_reported'],
  [unheard({ servedBy: SERVED, set: waitingFor('limit') }), 'not_reported'],
  // Labels lead to a set, and another one may have the job.
  [
    unheard({ servedBy: SERVED, set: waitingFor('max'), silentSets: 1, unanswered: [silent] }),
    'max',
    'no_worker',
  ],
  [job(set({ status: { runnerCounts: { ...COUNTS, starting: 1 } } })), 'starting'],
  [job(set({ status: { runnerCounts: { ...COUNTS, idle: 1 } } })), 'not_assigned'],
  [
    {
      kind: 'runner',
      ...runner({
        pending: [{ type: 'provision', scheduled: true, attempt: 1, taskQueue: 'holdfast-ci-a' }],
      }),
    },
    'registration_pace',
  ],
  ...(
    [
      ['rate_limited', 'rate_limit'],
      ['credentials', 'credential_rejected'],
      ['unknownCredential', 'credential_rejected'],
      ['unavailable', 'ci_server_unreachable'],
      ['computeUnavailable', 'cluster_unreachable'],
      ['computeForbidden', 'cluster_forbidden'],
      ['wrongLocation', 'wrong_location'],
      ['quota_exceeded', 'quota'],
      ['podInvalid', 'pod_rejected'],
      ['computeRejected', 'pod_rejected'],
      ['volumeClaimFenced', 'volume_claim'],
      ['notOnline', 'coming_online'],
      ['foreignObject', 'activity_failing'],
    ] as const
  ).map(([type, cause]) => [{ kind: 'runner', ...failing(FAILURE_TYPES[type]) }, cause] as const),
  [{ kind: 'runner', ...failing(FAILURE_TYPES.notVisible) }, 'pod_start'],
  [{ kind: 'runner', ...recovered({ scheduled: true }) }, 'cluster_unreachable'],
  [{ kind: 'runner', ...recovered({ scheduled: false }) }, 'job_running'],
  [
    job({
      ...waitingFor('scale_set'),
      listener: [
        pending({ type: 'listen', scheduled: false, failureType: FAILURE_TYPES.conflict }),
      ],
    }),
    'scale_set',
  ],
  [
    { kind: 'runner', ...pod({ scheduled: false, unschedulable: '0/3 nodes are available' }) },
    'unschedulable',
  ],
  [
    {
      kind: 'runner',
      ...pod({ problem: { kind: 'image_pull', message: 'not found', since: SINCE } }),
    },
    'image_pull',
  ],
  [
    { kind: 'runner', ...pod({ problem: { kind: 'config', message: 'no Secret', since: SINCE } }) },
    'container_start',
  ],
  [{ kind: 'runner', ...pod({ scheduled: false }) }, 'pod_start'],
  [{ kind: 'runner', ...runner({ status: statusIn('Registering') }) }, 'coming_online'],
  [{ kind: 'runner', ...idleRunner }, 'idle'],
  [{ kind: 'runner', ...runner({ status: statusIn('Busy') }) }, 'job_running'],
  [{ kind: 'runner', ...failing(FAILURE_TYPES.busy) }, 'job_running'],
  [{ kind: 'runner', ...draining('Idle') }, 'unregistering'],
  [{ kind: 'runner', ...draining('Busy') }, 'job_running'],
  [{ kind: 'runner', ...draining('Idle', '7') }, 'job_running'],
  [{ kind: 'runner', ...runner({ status: statusIn('Unregistering') }) }, 'unregistering'],
  [{ kind: 'runner', ...runner({ status: statusIn('TearingDown') }) }, 'tear_down'],
  // An open breaker permits one runner, whose waits are part of the response.
  [
    job({
      ...waitingFor('breaker'),
      starting: [pod({ scheduled: false, unschedulable: '0/3 nodes are available' })],
    }),
    'breaker',
    'unschedulable',
  ],
];

describe('the causes', () => {
  test.each(ROWS.map(([facts, ...causes]) => [causes.join(', '), facts, causes] as const))(
    '%s',
    (_title, facts, causes) => {
      expect(explain(facts).causes.map(({ cause }) => cause)).toEqual(causes);
    },
  );

  test('of the closed set have a row each', () => {
    const covered = new Set(ROWS.flatMap(([, ...causes]) => causes));
    expect(WAIT_CAUSES.filter((cause) => !covered.has(cause))).toEqual([]);
  });

  test.each<[Partial<SetFacts>, string]>([
    [{}, '--max'],
    [{ status: { ...waitingFor('max').status, replicas: 2 } as never }, '--replicas'],
    [{ resource: { namespace: 'ci', name: 'linux' } }, 'ci/linux'],
  ])('max: %j is fixed by %s', (more, fix) => {
    const [cause] = explain({ kind: 'set', ...waitingFor('max'), ...more }).causes;
    expect(cause?.fix).toContain(fix);
  });

  test("have the message, times and runner of the system that reported them, and a set's fix", () => {
    const message = '0/3 nodes are available: 3 Insufficient cpu';
    const facts = job({
      ...waitingFor('breaker'),
      starting: [pod({ scheduled: false, unschedulable: message })],
    });
    expect(explain(facts).causes).toEqual([
      { cause: 'breaker', text: 'words of breaker', until: UNTIL, fix: expect.any(String) },
      {
        cause: 'unschedulable',
        text: expect.stringContaining(message),
        since: SINCE,
        runner: 'runner-linux-a',
      },
    ]);
    expect(explain({ kind: 'runner', ...failing(FAILURE_TYPES.rate_limited) }).causes).toEqual([
      { cause: 'rate_limit', text: `words of ${FAILURE_TYPES.rate_limited}`, until: UNTIL },
    ]);
  });
});

describe('the state', () => {
  const end = {
    outcome: 'errored',
    cause: 'evicted',
    message: 'the pod was evicted',
    exitCode: 143,
    phases: [{ phase: 'Busy' as const, at: SINCE }],
    rerunWorkflowId: 'rerun-1',
  };
  const setEnd = { outcome: 'terminated', message: 'by ops' };
  const assigned: SetJobStatus = { ...QUEUED, state: 'assigned', runnerName: 'linux-a' };

  test.each<[string, WhyFacts, string]>([
    ['an idle runner', { kind: 'runner', ...idleRunner }, 'ready'],
    ['a busy runner', { kind: 'runner', ...runner({ status: statusIn('Busy') }) }, 'running'],
    ['a starting runner', { kind: 'runner', ...runner() }, 'waiting'],
    ['a runner that has ended', { kind: 'runner', ...runner({ end }) }, 'ended'],
    ['a set that serves', { kind: 'set', ...set() }, 'ready'],
    ['a job on a runner', job(set(), { record: assigned, runner: runner() }), 'running'],
    [
      'a job whose runner has ended',
      job(set(), { record: assigned, runner: runner({ end }) }),
      'ended',
    ],
    ['a completed job', job(set(), { record: { ...QUEUED, state: 'completed' } }), 'ended'],
    ['a job that left the queue', job(set(), { record: { ...QUEUED, state: 'left' } }), 'ended'],
    [
      'a job that no set knows, without labels',
      { ...unheard({}), labels: undefined } as never,
      'unknown',
    ],
    ['a run whose jobs wait', run(), 'waiting'],
    ['a queued job whose set has ended', job(set({ end: setEnd })), 'unknown'],
    ['a run whose set has ended', run({ sets: [set({ end: setEnd })] }), 'unknown'],
    [
      'a job that the set of its labels does not know',
      unheard({ servedBy: SERVED, set: waitingFor('max') }),
      'unknown',
    ],
    [
      'a job that no set serves, and a set that does not answer',
      unheard({ sets: [routable('mac', { labels: ['mac'] })], silentSets: 1 }),
      'unknown',
    ],
  ])('%s', (_title, facts, state) => {
    expect(explain(facts).state).toBe(state);
  });

  test('of an ended runner comes with the verdict and its evidence', () => {
    expect(explain(job(set(), { record: assigned, runner: runner({ end }) })).verdict).toEqual({
      outcome: 'errored',
      cause: 'evicted',
      message: 'the pod was evicted',
      evidence: [
        expect.stringContaining('143'),
        expect.stringContaining('Busy'),
        expect.stringContaining('rerun-1'),
      ],
    });
  });

  test('of a queued job comes with the end of its set', () => {
    expect(explain(job(set({ end: setEnd })))).toMatchObject({
      causes: [],
      verdict: setEnd,
      missing: [expect.any(String)],
    });
  });

  test('of an unknown job has the number of sets that did not respond, even if few are explained', () => {
    const { missing } = explain(unheard({ silentSets: 17, unanswered: [set(), silent] }));
    expect(missing).toEqual([expect.stringContaining('17')]);
  });

  test.each<[string, Partial<RunFacts>, RegExp]>([
    ['silent sets', { silentSets: 17 }, /\b17\b/],
    ['sets that were not read', { unreadSets: 18 }, /\b18\b/],
    [
      'a set that may have more jobs',
      { known: Array.from({ length: MAX_SET_JOBS }, () => ({ set: 'set-linux', job: QUEUED })) },
      /set-linux/,
    ],
    ['an ended set', { sets: [set({ end: setEnd })] }, /set-linux/],
  ])('of a run names missing facts: %s', (_title, facts, text) => {
    expect(explain(run()).missing).toHaveLength(1);
    expect(explain(run(facts)).missing.slice(1)).toEqual([expect.stringMatching(text)]);
  });

  test('names the pods that could not be read', () => {
    const unread = runner({ podUnread: 'no kubeconfig' });
    expect(explain({ kind: 'set', ...set({ starting: [unread] }) }).missing).toEqual([
      expect.stringContaining('no kubeconfig'),
    ]);
  });
});

describe('the set that serves a job', () => {
  const ask = (more: Partial<JobQuestion>): JobQuestion => ({
    jobId: '7',
    repository: 'acme/app',
    labels: wanted('linux'),
    known: [],
    sets: [],
    unknownSets: [],
    ...more,
  });

  test.each<[string, JobQuestion, object]>([
    ['only_match', ask({ sets: [routable('a')] }), { id: 'set-a' }],
    [
      'fewest_labels',
      ask({ sets: [routable('gpu', { labels: ['linux', 'gpu'] }), routable('a')] }),
      { id: 'set-a' },
    ],
    [
      'narrowest_scope',
      ask({ sets: [routable('a'), routable('b', { scope: 'acme/app', scopeKind: 'repository' })] }),
      { id: 'set-b' },
    ],
    [
      'runner_group',
      ask({ sets: [routable('a', { group: { id: '2' } }), routable('b')] }),
      { id: 'set-b' },
    ],
    ['shared', ask({ sets: [routable('a'), routable('b')] }), {}],
    ['scale_set', ask({ sets: [scaleSet('a')] }), { id: 'set-a' }],
    [
      'only_match',
      {
        ...ask({ sets: [routable('a'), routable('b', { labels: ['mac'] })] }),
        repository: undefined,
      } as never,
      { id: 'set-a' },
    ],
    [
      'scale_set',
      { ...ask({ sets: [scaleSet('a')] }), repository: undefined } as never,
      { id: 'set-a' },
    ],
    ['reported', ask({ known: [{ set: 'set-a', job: QUEUED }] }), { id: 'set-a' }],
    [
      'rerouted',
      ask({
        known: [
          { set: 'set-a', job: { ...QUEUED, reroutedTo: 'set-b' } },
          { set: 'set-b', job: { ...QUEUED, reroutedHere: true } },
        ],
      }),
      { id: 'set-b', reroutedFrom: 'set-a' },
    ],
  ])('%s', (because, question, found) => {
    expect(servingSet(question)).toMatchObject({ ...found, because });
  });

  const runnerName = 'b-aaaaaaaaaa-0123456789';
  test.each<[string, Partial<SetJobStatus>, Partial<SetJobStatus>, string]>([
    ['a later attempt', { runAttempt: 2 }, { state: 'completed' }, 'set-a'],
    ['the end', { state: 'assigned' }, { state: 'completed' }, 'set-b'],
    ['the start', { state: 'queued' }, { state: 'assigned' }, 'set-b'],
    ['the queue', { state: 'left' }, { state: 'queued' }, 'set-b'],
    [
      'the set of the runner',
      { state: 'assigned', runnerName },
      { state: 'assigned', runnerName },
      'set-b',
    ],
  ])('%s decides between two records', (_title, a, b, set) => {
    const known = [
      { set: 'set-a', job: { ...QUEUED, ...a } },
      { set: 'set-b', job: { ...QUEUED, ...b } },
    ];
    expect([currentRecord(known)?.set, currentRecord(known.toReversed())?.set]).toEqual([set, set]);
  });

  test('is none if several have the labels, and the repository is unknown', () => {
    const sets = [routable('a'), routable('b', { scope: 'other' })];
    const unnamed = { ...unheard({ sets }), repository: undefined } as never;
    expect(servingSet(unnamed)).toBeUndefined();
    expect(explain(unnamed)).toMatchObject({
      state: 'unknown',
      missing: [expect.stringContaining('URL')],
    });
  });

  const gitea = (...labels: string[]): RoutableSet =>
    routable('gitea', { ciServer: 'gitea', labels });
  test.each<[string, string, RoutableSet[], string | undefined]>([
    ["Gitea's case", 'Linux', [routable('a', { labels: ['mac'] }), gitea('Linux')], 'set-gitea'],
    ["GitHub's case", 'Linux', [gitea('linux'), routable('a')], 'set-a'],
    ['both', 'linux', [gitea('linux'), routable('a')], undefined],
    ['both', 'linux', [routable('a'), gitea('linux')], undefined],
    ['both, one a scale set', 'linux', [scaleSet('a'), gitea('linux')], undefined],
  ])('is the one of the CI server whose rules match: %s', (_title, label, sets, id) => {
    const labels = wanted(label);
    expect(servingSet(ask({ labels, sets }))?.id).toBe(id);
  });

  test('is none if sets of several CI servers match, and the answer names these', () => {
    const sets = [gitea('linux'), routable('a')];
    expect(explain(unheard({ sets }))).toMatchObject({
      state: 'unknown',
      causes: [],
      missing: [expect.stringMatching(/gitea.*github|github.*gitea/)],
      otherSets: [{ mismatches: [] }, { mismatches: [] }],
    });
  });

  test('is none if no set matches', () => {
    expect(servingSet(ask({ sets: [routable('a', { labels: [] })] }))).toBeUndefined();
  });

  test('is none, and each set has its mismatches', () => {
    const { otherSets } = explain(
      unheard({
        labels: wanted('linux', 'gpu'),
        sets: [
          routable('a'),
          routable('b', { labels: ['linux', 'gpu'], scope: 'other' }),
          { ...routable('c'), routing: { labels: [], scope: '', scopeKind: 'organization' } },
        ],
        unknownSets: ['set-d'],
      }),
    );
    expect(otherSets).toEqual([
      expect.objectContaining({ id: 'set-a', mismatches: ['labels'], missingLabels: ['gpu'] }),
      expect.objectContaining({ id: 'set-b', mismatches: ['repository'], missingLabels: [] }),
      expect.objectContaining({ id: 'set-d', mismatches: ['unknown'] }),
    ]);
  });
});

/** GitHub assigns the jobs of a scale set: the routing has no CI server. */
function scaleSet(name: string): RoutableSet {
  const { workflowId, routing } = routable(name);
  const { ciServer: _none, ...rest } = routing;
  return { workflowId, routing: rest };
}

test.each<[string, string | undefined, string | undefined, boolean]>([
  ['another repository, so another CI server', 'other/app', 'acme/web', false],
  ['the same', 'acme/web', 'acme/web', true],
  ['the same in another case', 'Acme/Web', 'acme/web', true],
  ['a completed job without a known repository', 'acme/web', undefined, true],
  ['the subject names no repository', undefined, 'acme/web', true],
])('a record of a job: %s', (_what, asked, repository, counts) => {
  const job = {
    jobId: '5',
    runAttempt: 1,
    state: 'queued',
    since: SINCE,
    ...(repository && { repository }),
  };
  const known = [{ set: 'set-linux', job: job as SetJobStatus }];
  expect(recordsIn(known, asked)).toEqual(counts ? known : []);
});
