/** The waits of a set by cause, and its response to the query for jobs. */
import { describe, expect, test } from '@jest/globals';
import type { RunnerSetInput, WaitCause } from '../../../core/contract/index.ts';
import { setJobs } from '../../../workflows/runnerSet/jobStatus.ts';
import { setStatus } from '../../../workflows/runnerSet/status.ts';
import { nextRun } from '../../support/nextRun.ts';
import { SetModel } from '../../support/setModel.ts';
import { reschedule } from '../../../workflows/runnerSet/setFacts.ts';

const BASE: RunnerSetInput = {
  name: 'linux',
  minIdle: 0,
  max: 50,
  template: { organization: 'acme' },
  queueCheck: '0s',
};

/** A set with this many jobs of its organization, whose events have arrived. */
function modelWith(jobs: number, change: Partial<RunnerSetInput> = {}): SetModel {
  const model = new SetModel({ ...BASE, ...change });
  for (let job = 0; job < jobs; job++) model.queueJob();
  for (const event of model.mail.splice(0)) model.deliver(event);
  model.step();
  return model;
}

const causes = ({ state, now }: SetModel): WaitCause[] =>
  (setStatus(state, now).waits ?? []).map(({ cause }) => cause);

describe('the waits of a set', () => {
  test('are absent while it serves its jobs', () => {
    const model = modelWith(2);
    expect(setStatus(model.state, model.now)).not.toHaveProperty('waits');
  });

  test.each<[WaitCause, Partial<RunnerSetInput>]>([
    ['max', { max: 2 }],
    ['max', { max: 0 }],
    ['limit', { limits: { perRepository: 1 } }],
  ])('%s: %j', (cause, change) => {
    expect(causes(modelWith(4, change))).toContain(cause);
  });

  test('contain a pause with its reason, which waitingFor leaves to blockedReason', () => {
    const model = modelWith(1);
    model.state.pause('node work');
    expect(setStatus(model.state, model.now)).toMatchObject({
      waits: [{ cause: 'paused', text: 'paused: node work' }],
      blockedReason: 'paused: node work',
    });
    expect(setStatus(model.state, model.now)).not.toHaveProperty('waitingFor');
  });

  test('contain the failure that opened the breaker, with its start and end', () => {
    const model = modelWith(1);
    const at = model.now;
    model.state.facts.health = {
      failures: 2,
      probes: 0,
      failedAt: at,
      openedAt: at,
      cause: 'image_pull',
      nextTryAt: at + 15_000,
      last: { runner: 'runner-linux-a', message: 'no such image', at },
    };
    const iso = (ms: number): string => new Date(ms).toISOString();
    expect(setStatus(model.state, at).waits?.[0]).toEqual({
      cause: 'breaker',
      text: 'image_pull ×2: no such image (runner-linux-a)',
      since: iso(at),
      until: iso(at + 15_000),
    });
  });

  test('contain the active schedule, with its end', () => {
    const model = modelWith(1, { schedules: [{ cron: '0 0 * * *', duration: '1h', max: 0 }] });
    reschedule(model.state.facts, { index: 0, until: model.now + 60_000 }, model.now, model.now);
    expect(setStatus(model.state, model.now).waits).toContainEqual(
      expect.objectContaining({
        cause: 'schedule',
        until: new Date(model.now + 60_000).toISOString(),
      }),
    );
  });
});

describe('the query for jobs', () => {
  const model = modelWith(3, { limits: { perRepository: 1 } });
  const [first] = setJobs(model.state, { repository: 'ACME/app' });

  test('selects by repository, and reports that a limit holds jobs back', () => {
    expect(setJobs(model.state, { repository: 'ACME/app' })).toHaveLength(3);
    expect(first).toMatchObject({ state: 'queued', repository: 'acme/app', limited: true });
    expect(setJobs(model.state, { repository: 'acme/other' })).toEqual([]);
  });

  test('selects one job, until after its end', () => {
    const { jobId = '', runAttempt = 1 } = first ?? {};
    expect(setJobs(model.state, { jobId })).toEqual([first]);
    const over = { jobId, runAttempt, repository: 'acme/app', labels: [], at: model.now };
    model.state.jobReports.onJobEvents([{ ...over, action: 'completed' }], model.now);
    expect(setJobs(model.state, { jobId })).toEqual([
      { jobId, runAttempt, state: 'completed', since: new Date(model.now).toISOString() },
    ]);
  });

  test('selects the jobs of one workflow run, also after continue-as-new', () => {
    const { state, now } = modelWith(1);
    const job = { runAttempt: 1, repository: 'acme/app', labels: [], at: now };
    state.jobReports.onJobEvents(
      ['7', '7', '8', 'r/1'].map((runId, index) => ({
        ...job,
        action: 'queued',
        jobId: `${500 + index}`,
        runId,
      })),
      now,
    );
    for (const each of [state, nextRun(state)]) {
      const ids = (runId: unknown): string[] =>
        setJobs(each, { repository: 'acme/app', runId }).map(({ jobId }) => jobId);
      expect(ids('7')).toEqual(['500', '501']);
      expect(ids('8')).toEqual(['502']);
      expect(ids('r/1')).toEqual(['503']);
      expect(ids('9')).toEqual([]);
      expect(ids(7)).toEqual([]);
    }
    expect(setJobs(state, { runId: '7' })).toEqual([]);
  });

  test.each([undefined, null, 7, {}, { repository: 7 }, { jobId: {} }])(
    'selects no job by %j',
    (request) => {
      expect(setJobs(model.state, request)).toEqual([]);
    },
  );
});
