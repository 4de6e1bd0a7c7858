/** Gitea's deliveries: `created_at` is the time of the run, maybe days before its job is queued. */
import { expect, test } from '@jest/globals';
import type { JobDelivery } from '../../../worker/webhook/jobDelivery.ts';
import { GITEA_DELIVERIES } from '../../../worker/webhook/servers/gitea/giteaDeliveries.ts';

const NOW = Date.parse('2026-03-09T12:00:00Z');
const EPOCH = '1970-01-01T00:00:00Z';
const STARTED = '2026-03-09T11:59:00Z';

const read = (action: string, fields: object): JobDelivery => {
  const body = {
    action,
    workflow_job: {
      id: 7,
      run_attempt: 0,
      labels: ['linux'],
      created_at: '2026-03-01T12:00:00Z',
      started_at: EPOCH,
      completed_at: EPOCH,
      ...fields,
    },
    repository: { full_name: 'acme/app' },
  };
  const headers = { 'x-github-event': 'workflow_job' };
  const delivery = GITEA_DELIVERIES.read(headers, Buffer.from(JSON.stringify(body)), NOW);
  if (!('event' in delivery)) throw new Error(delivery.outcome);
  return delivery;
};

test('a job whose run is days old is queued when its event arrives', () => {
  expect(read('queued', {}).event).toMatchObject({ action: 'queued', at: NOW });
});

test('the time to its start is unknown', () => {
  const started = read('in_progress', { run_attempt: 1, runner_id: 3, started_at: STARTED });
  expect(started.event.at).toBe(Date.parse(STARTED));
  expect(started).not.toHaveProperty('startupMs');
});

test('an end days ago is rejected', () => {
  const old = { run_attempt: 1, runner_id: 3, completed_at: '2026-03-02T12:00:00Z' };
  expect(() => read('completed', old)).toThrow('expired');
});
