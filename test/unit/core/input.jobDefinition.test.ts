import { describe, expect, test } from '@jest/globals';
import { scheduleFault } from '../../../activities/runnerSet/schedules.ts';
import { jobOf, runOf } from '../../../core/domain/declaredJob.ts';
import { parseJobDefinition } from '../../../core/input/jobDefinition.ts';
import { parseJobInput } from '../../../core/input/job.ts';
import type { JobDefinitionInput, StepVolume } from '../../../core/contract/index.ts';

const UNIT: JobDefinitionInput = {
  name: 'unit',
  repository: 'acme/web',
  on: { push: { branches: ['main'] } },
  test: [{ name: 'unit', commands: 'make test' }],
};
const parse = (more: object): ReturnType<typeof parseJobDefinition> =>
  parseJobDefinition({ ...UNIT, ...more }, { checkSchedule: scheduleFault });
const faults = (more: object): string[] => {
  const parsed = parse(more);
  return parsed.ok ? [] : parsed.errors.map(({ field, message }) => `${field} ${message}`);
};
const SECRET: StepVolume = { name: 'cloud', mountPath: '/cloud', secret: { secretName: 'cloud' } };
const SCRATCH: StepVolume = { name: 'scratch', mountPath: '/scratch', emptyDir: {} };

test('with its defaults', () => {
  expect(
    parse({
      on: { push: null, pull_request: { paths: ['src/**'] }, schedule: [{ cron: '0 3 * * *' }] },
      maxConcurrency: 2,
    }),
  ).toEqual({
    ok: true,
    spec: {
      name: 'unit',
      repository: 'acme/web',
      credential: 'default',
      push: {},
      pullRequest: { paths: ['src/**'] },
      schedules: [{ cron: '0 3 * * *', timeZone: 'UTC' }],
      untrusted: false,
      maxConcurrency: 2,
      relookMs: 60_000,
      warnings: [],
    },
  });
});

describe('what is wrong is told by its field', () => {
  test.each<[object, string]>([
    [{ repository: undefined }, 'repository is missing: the repository'],
    [{ repository: 'acme' }, 'repository must be "owner/repo"'],
    [{ on: undefined }, 'on is missing: what starts the job'],
    [{ on: {} }, 'on must have at least one of push'],
    [{ on: { release: {} } }, 'on.release is not a known field'],
    [{ on: { push: { branches: [] } } }, 'on.push.branches must have at least one pattern'],
    [{ on: { push: { branches: ['!main'] } } }, 'on.push.branches must have a pattern without "!"'],
    [{ on: { pull_request: { paths: ['[a'] } } }, 'on.pull_request.paths.0 has a "[" without'],
    [{ on: { schedule: [] } }, 'on.schedule must have at least one entry'],
    [
      { on: { schedule: [{ cron: 'soon' }] } },
      'on.schedule.0.cron "soon" is not a cron expression',
    ],
    [
      { on: { schedule: [{ cron: '0 3 * * *', timeZone: 'Berlin' }] } },
      'on.schedule.0.cron "Berlin" is not a time zone',
    ],
    [{ maxConcurrency: 0 }, 'maxConcurrency must be 1 or more'],
    [{ maxConcurrency: 101 }, 'maxConcurrency must be at most 100'],
    [{ untrusted: 'yes' }, 'untrusted must be true or false'],
    [{ source: { event: 'push' } }, 'source is not a known field'],
    [{ test: [] }, 'test must have at least one step'],
    [
      { test: [{ name: 'unit', commands: 'make', env: { JOB_COMMIT: 'x' } }] },
      'test.0.env.JOB_COMMIT is set by the job',
    ],
    [{ timeout: 'soon' }, 'timeout is not a duration'],
    [{ test: [{ name: 'unit', commands: 'x'.repeat(1_100_000) }] }, 'bytes as JSON'],
  ])('%j', (more, fault) => {
    expect(faults(more).join('\n')).toContain(fault);
  });
});

test("whose volumes are not there in outsiders' runs is told", () => {
  const test = [{ name: 'unit', commands: 'make', volumes: [SECRET, SCRATCH] }];
  expect(parse({ untrusted: true, test })).toMatchObject({
    spec: {
      warnings: ["unit: the volume cloud (secret) is not there in the runs of outsiders' changes"],
    },
  });
  expect(parse({ test })).toMatchObject({ spec: { warnings: [] } });
});

describe('a run of it', () => {
  const volumes: StepVolume[] = [
    SECRET,
    SCRATCH,
    ...['persistentVolumeClaim', 'projected', 'hostPath', 'csi', 'nfs', 'ephemeral'].map(
      (kind): StepVolume => ({ name: kind.toLowerCase(), mountPath: `/${kind}`, [kind]: {} }),
    ),
    { name: 'two', mountPath: '/two', emptyDir: {}, secret: { secretName: 'cloud' } },
  ];
  const steps = [{ name: 'a', commands: 'a', volumes }];
  const definition: JobDefinitionInput = {
    ...UNIT,
    pre: steps,
    test: steps.map((each) => ({ ...each, name: 'b' })),
    post: steps.map((each) => ({ ...each, name: 'c' })),
    untrusted: true,
    maxConcurrency: 1,
    intervals: { relook: '1m' },
  };
  const names = (run: JobDefinitionInput | ReturnType<typeof runOf>): string[][] =>
    [...(run.pre ?? []), ...run.test, ...(run.post ?? [])].map((each) =>
      (each.volumes ?? []).map(({ name }) => name),
    );

  test("an outsider's has what is harmless alone, in every stage; a trusted one all", () => {
    expect(
      names(runOf(definition, { event: 'pull_request', pullRequest: 7, untrusted: true })),
    ).toEqual([['scratch'], ['scratch'], ['scratch']]);
    expect(names(runOf(definition, { event: 'pull_request', pullRequest: 7 }))).toEqual(
      names(definition),
    );
  });

  test('has no field of the declaration alone, and says what it is for; of a schedule nothing is reported', () => {
    expect(
      runOf(
        { ...UNIT, untrusted: true, maxConcurrency: 1, intervals: {} },
        { event: 'push', commit: 'a1' },
      ),
    ).toEqual({
      name: 'unit',
      repository: 'acme/web',
      test: UNIT.test,
      source: { event: 'push', commit: 'a1' },
    });
    expect(runOf(UNIT, { event: 'schedule' })).toMatchObject({ report: false });
    expect(jobOf(UNIT)).not.toHaveProperty('on');
  });

  test("whoever hands in an outsider's run with more is refused: not on trust", () => {
    const source = { event: 'pull_request', pullRequest: 7, untrusted: true };
    const parsed = parseJobInput({ ...jobOf(definition), source }, { workflowId: 'job-x' });
    expect(
      parsed.ok
        ? []
        : parsed.errors
            .filter(({ message }) => message.includes("outsider's"))
            .map(({ field }) => field),
    ).toHaveLength(3 * 8);
    const stripped = parseJobInput(
      { ...runOf(definition, { event: 'pull_request', pullRequest: 7, untrusted: true }) },
      { workflowId: 'job-x' },
    );
    expect(stripped).toMatchObject({
      ok: true,
      spec: {
        steps: [
          { runner: { untrusted: true } },
          { runner: { untrusted: true } },
          { runner: { untrusted: true } },
        ],
      },
    });
    expect(
      parseJobInput({ ...jobOf(UNIT), source: { event: 'push' } }, { workflowId: 'job-x' }),
    ).not.toHaveProperty('spec.steps.0.runner.untrusted');
  });
});
