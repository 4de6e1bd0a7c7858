import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import type { SetLimits } from '../../../core/contract/index.ts';
import {
  JobLimits,
  isExhausted,
  nextDay,
  runnerHours,
  accumulateRunnerTime,
  type JobCount,
  type RunnerTime,
} from '../../../workflows/runnerSet/limits.ts';
import { decideSet } from '../../../workflows/runnerSet/decide.ts';
import { setStatus } from '../../../workflows/runnerSet/status.ts';
import { SetModel } from '../../support/setModel.ts';

const HOUR = 3_600_000;
const DAY = 24 * HOUR;

describe('jobs within limits', () => {
  const both: SetLimits = {
    perRepository: 4,
    repositories: [
      { repositories: ['acme/web', 'acme/api-*'], max: 6 },
      { repositories: ['beta/*'], max: 0 },
    ],
  };
  const row = (queued: number, running = 0): JobCount => ({ queued, running });
  test.each<
    [
      what: string,
      limits: SetLimits,
      jobs: Record<string, JobCount>,
      counted: JobCount,
      limited: Record<string, number>,
    ]
  >([
    ['without a limit all jobs count', {}, { 'acme/web': row(9, 3) }, row(9, 3), {}],
    [
      'each repository has its limit',
      { perRepository: 4 },
      { 'acme/web': row(9), 'acme/app': row(2) },
      row(6),
      { 'acme/web': 5 },
    ],
    [
      'running jobs count',
      { perRepository: 4 },
      { 'acme/web': row(9, 3) },
      row(1, 3),
      { 'acme/web': 8 },
    ],
    [
      'more jobs run than permitted, on runners of other sets: no runner is started in their place',
      { perRepository: 4 },
      { 'acme/web': row(2, 6) },
      row(0, 4),
      { 'acme/web': 2 },
    ],
    [
      'several together',
      both,
      { 'acme/web': row(4), 'acme/api-1': row(4), 'acme/app': row(4) },
      row(10),
      { 'acme/web, acme/api-*': 2 },
    ],
    [
      'each repository is limited first',
      both,
      { 'acme/web': row(9), 'acme/api-1': row(1) },
      row(5),
      { 'acme/web': 5 },
    ],
    ['a limit of zero', both, { 'Beta/x': row(3) }, row(0), { 'beta/*': 3 }],
    [
      'rerouted jobs count',
      { perRepository: 4 },
      { 'acme/web': { ...row(9, 1), rerouted: 2 }, 'acme/app': { ...row(3), rerouted: 7 } },
      row(1, 1),
      { 'acme/web': 8, 'acme/app': 3 },
    ],
    [
      'a limit for several repositories together, in the order of the jobs',
      both,
      {
        'acme/web': row(4),
        'acme/api-1': { ...row(0), rerouted: 3 },
        'beta/x': { ...row(1), rerouted: 1 },
      },
      row(3),
      { 'acme/web, acme/api-*': 1, 'beta/*': 1 },
    ],
    [
      'names are compared without case',
      both,
      { 'ACME/Web': row(4), 'acme/API-2': row(4) },
      row(6),
      { 'acme/web, acme/api-*': 2 },
    ],
  ])('%s', (_what, limits, jobs, counted, limited) => {
    const within = new JobLimits(limits).count(new Map(Object.entries(jobs)));
    const { allowed = new Map(), ...rest } = within;
    expect({ ...rest, limited: Object.fromEntries(within.limited) }).toEqual({
      ...counted,
      limited,
    });
    expect([...allowed.values()].reduce((sum, one) => sum + one, 0)).toBe(counted.queued);
  });

  const jobsOfRepositories = fc.dictionary(
    fc.constantFrom('acme/a', 'acme/b', 'acme/c', 'beta/a', 'beta/b'),
    fc.record({ queued: fc.nat(30), running: fc.nat(30) }),
  );
  const sum = (counts: Iterable<number>): number => [...counts].reduce((all, one) => all + one, 0);
  const total = (jobs: Record<string, JobCount>): JobCount => ({
    queued: sum(Object.values(jobs).map(({ queued }) => queued)),
    running: sum(Object.values(jobs).map(({ running }) => running)),
  });

  test('for all jobs: no limit is exceeded, and other jobs are held back or running', () => {
    const limits = fc.record({
      perRepository: fc.integer({ min: 1, max: 40 }),
      repositories: fc.array(
        fc.record({
          repositories: fc.array(fc.constantFrom('acme/*', 'beta/a', 'acme/b'), { minLength: 1 }),
          max: fc.nat(60),
        }),
        { maxLength: 3 },
      ),
    });
    fc.assert(
      fc.property(limits, jobsOfRepositories, (of, jobs) => {
        const within = new JobLimits(of).count(new Map(Object.entries(jobs)));
        const all = total(jobs);
        expect(within.queued + sum(within.limited.values())).toBe(all.queued);
        expect(within.running).toBeLessThanOrEqual(all.running);
        expect(within.queued + within.running).toBeLessThanOrEqual(
          Object.keys(jobs).length * of.perRepository,
        );
      }),
    );
  });

  test('a limit that no repository exceeds holds no job back', () => {
    fc.assert(
      fc.property(jobsOfRepositories, fc.nat(10), (jobs, spare) => {
        const most = Math.max(
          1,
          ...Object.values(jobs).map(({ queued, running }) => queued + running),
        );
        const limits = { perRepository: most + spare, repositories: [] };
        const within = new JobLimits(limits).count(new Map(Object.entries(jobs)));
        expect({ ...total(jobs), held: 0 }).toEqual({
          queued: within.queued,
          running: within.running,
          held: sum(within.limited.values()),
        });
      }),
    );
  });
});

describe('the runner time of a day', () => {
  const at = (hours: number): number => 20_000 * DAY + hours * HOUR;
  const after = (...steps: [hours: number, runners: number][]): RunnerTime =>
    steps.reduce<RunnerTime | undefined>(
      (time, [hours, runners]) => accumulateRunnerTime(time, runners, at(hours)),
      undefined,
    ) as RunnerTime;

  test('is the sum over all runners', () => {
    expect(runnerHours(after([1, 10], [1.5, 4], [3.5, 0], [9, 1]))).toBe(5 + 8);
  });

  test('restarts with each day (UTC), with the running runners', () => {
    expect(runnerHours(after([20, 2], [26, 2]))).toBe(4);
    expect(runnerHours(after([20, 2], [49, 0]))).toBe(2);
    expect(nextDay(at(20))).toBe(at(24));
  });

  test('does not decrease if the clock is set back', () => {
    expect(runnerHours(after([10, 4], [12, 4], [11, 4], [13, 0]))).toBe(12);
  });

  test('is exhausted when the limit is reached, and never without a limit', () => {
    const time = after([0, 1], [2, 1]);
    expect(
      [{ maxRunnerHours: 2 }, { maxRunnerHours: 2.1 }, {}].map((limits) =>
        isExhausted(limits, time),
      ),
    ).toEqual([true, false, false]);
  });
});

describe('a set with limits', () => {
  const template = { organization: 'acme' };

  test('has runners up to its limit, reports the jobs that it holds back, and continues within the limit', () => {
    const model = new SetModel({
      name: 'linux',
      minIdle: 0,
      max: 50,
      template,
      limits: { perRepository: 3 },
      queueCheck: '0s',
    });
    for (let job = 0; job < 10; job++) model.queueJob();
    for (const event of model.mail.splice(0)) model.deliver(event);
    model.step();
    expect(model.count()).toBe(3);
    const status = setStatus(model.state, model.now);
    expect(status).toMatchObject({
      desired: 3,
      jobs: { queued: 10 },
      limited: { jobs: 7, runners: 0 },
      waitingFor: 'limits: 7 jobs are held back (7 of acme/app)',
    });
    let most = 0;
    for (let round = 0; round < 100 && (model.queue.length > 0 || model.count() > 0); round++) {
      for (const runner of model.runners.values()) {
        model.comeOnline(runner);
        model.takeJob(runner);
      }
      most = Math.max(most, model.count('Busy'));
      for (const event of model.mail.splice(0)) model.deliver(event);
      for (const runner of model.runners.values()) model.finishJob(runner);
      for (const event of model.mail.splice(0)) model.deliver(event);
      model.step();
    }
    expect({ left: model.queue.length, most, over: model.state.jobs.completedTotal }).toEqual({
      left: 0,
      most: 3,
      over: 10,
    });
    expect(setStatus(model.state, model.now)).not.toHaveProperty('limited');
  });

  test('that has used its time of the day starts no runner, lets busy ones finish, and continues the next day', () => {
    const model = new SetModel({
      name: 'linux',
      minIdle: 2,
      max: 50,
      template,
      limits: { maxRunnerHours: 4 },
      queueCheck: '0s',
    });
    const midnight = nextDay(model.now);
    model.step(midnight - model.now);
    for (const runner of model.runners.values()) model.comeOnline(runner);
    model.queueJob();
    model.takeJob(model.pick(0) as never);
    for (const event of model.mail.splice(0)) model.deliver(event);
    model.step(4 * HOUR);
    model.pass(HOUR);
    expect(model.state.facts.limited.runners).toBeGreaterThan(0);
    expect({ runners: model.count(), busy: model.count('Busy') }).toEqual({ runners: 1, busy: 1 });
    expect(setStatus(model.state, model.now).waitingFor).toContain(
      `maxRunnerHours: 4 hours of today are used up; 2 runners are held back until ${new Date(midnight + DAY).toISOString()}`,
    );
    for (let job = 0; job < 5; job++) model.queueJob();
    for (const event of model.mail.splice(0)) model.deliver(event);
    model.step();
    expect(model.count()).toBe(1);
    expect(decideSet(model.state, model.now).wakeAt).toBeLessThanOrEqual(midnight + DAY);
    model.pass(midnight + DAY - model.now);
    expect(model.count()).toBe(8);
  });
});
