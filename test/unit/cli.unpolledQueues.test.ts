import { expect, test } from '@jest/globals';
import { hasRecentPoller } from '../../core/domain/pollers.ts';
import { fixFor, unpolledQueues } from '../../cli/shared/unpolledQueues.ts';

const NOW = Date.parse('2026-03-01T12:00:00Z');

test.each<[what: string, secondsAgo: number[], polled: boolean]>([
  ['no worker ever', [], false],
  ['a worker that polls', [0], true],
  ['a worker in a long poll', [60], true],
  ['a stopped worker that Temporal still lists', [120], false],
  ['a stopped worker and a running one', [200, 5], true],
])('whether a queue is polled: %s', (_what, secondsAgo, polled) => {
  expect(
    hasRecentPoller(
      secondsAgo.map((seconds) => NOW - seconds * 1_000),
      NOW,
    ),
  ).toBe(polled);
});

test.each<[queue: string, fix: RegExp]>([
  ['holdfast', /^start a worker with HOLDFAST_TASK_QUEUE=holdfast /],
  ['holdfast-cluster', /^start a worker with HOLDFAST_TASK_QUEUE=holdfast /],
  ['holdfast-ci-ghes', /has the credential "ghes": add it to HOLDFAST_CREDENTIALS/],
])('the fix of a queue without a worker: %s', (queue, fix) => {
  expect(fixFor(queue, 'holdfast')).toMatch(fix);
});

test.each<
  [what: string, behavior: number | undefined, override: object | undefined, isShown: boolean]
>([
  ['stays on its version', 1, undefined, true],
  ['moves on', 2, undefined, false],
  ['was requested to move to another version', 1, { autoUpgrade: true }, false],
  ['has no version', undefined, undefined, false],
])(
  'the workers of its version have ended, and others poll: a workflow that %s',
  async (_what, behavior, versioningOverride, isShown) => {
    const raw = {
      workflowExecutionInfo: {
        versioningInfo: {
          behavior,
          deploymentVersion: { deploymentName: 'ns/holdfast-worker', buildId: 'one' },
          versioningOverride,
        },
      },
    };
    const description = {
      taskQueue: 'holdfast',
      workflowId: 'runner-1',
      status: { code: 1, name: 'RUNNING' },
      raw,
    } as unknown as Parameters<typeof unpolledQueues>[1];
    const queues = await unpolledQueues(
      async (_name, _type, version) => version === undefined,
      description,
      [],
    );
    const move: unknown = expect.stringMatching(
      /^it stays on version one of ns\/holdfast-worker, .* --workflow-id runner-1 --versioning-override-behavior auto_upgrade$/,
    );
    expect(queues.map(({ fix }) => fix)).toEqual(isShown ? [move] : []);
  },
);
