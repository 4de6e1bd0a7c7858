/** Deliveries as a real Gitea sends them, with its official runner. */
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals';
import { jobKey } from '../../core/domain/ciJobState.ts';
import { GITEA_DELIVERIES } from '../../worker/webhook/servers/gitea/giteaDeliveries.ts';
import type { JobDelivery } from '../../worker/webhook/jobDelivery.ts';
import { SetJobs } from '../../workflows/runnerSet/jobs.ts';
import { ciServerOf } from '../support/ciServers.ts';
import { Gitea } from '../support/gitea.ts';
import { GiteaRunnerProcess } from '../support/giteaRunner.ts';
import { describeWithLab } from '../support/lab.ts';
import { untilSeen } from '../support/until.ts';

const SECRET = 'webhook secret';

await describeWithLab("Gitea's deliveries", { gitea: true, kubernetes: false }, (lab) => {
  const gitea = new Gitea(lab.gitea);
  const received: { headers: IncomingHttpHeaders; body: Buffer }[] = [];
  const runners: GiteaRunnerProcess[] = [];
  let receiver: Server;
  let hook: number;

  beforeAll(async () => {
    await gitea.clear();
    receiver = createServer((request, response) => {
      void buffer(request).then((body) => {
        received.push({ headers: request.headers, body });
        response.writeHead(204).end();
      });
    });
    await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve));
    const url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`;
    ({ id: hook } = await gitea.api<{ id: number }>('POST', '/orgs/acme/hooks', {
      type: 'gitea',
      active: true,
      events: ['workflow_job'],
      config: { url, content_type: 'json', secret: SECRET },
    }));
  });
  afterEach(async () => {
    for (const runner of runners.splice(0)) await runner.stop();
    await gitea.clear();
  });
  afterAll(async () => {
    await gitea.api('DELETE', `/orgs/acme/hooks/${hook}`);
    receiver.close();
    receiver.closeAllConnections();
  });

  async function startRunner(name: string): Promise<void> {
    const { url, token } = gitea.access;
    const { server, close } = ciServerOf({
      server: 'gitea',
      type: 'pat',
      tokenProvider: () => token,
      apiUrl: `${url}/api/v1`,
    });
    const { env } = await server.register({
      scope: { kind: 'organization', name: 'acme' },
      name,
      labels: [name],
      group: 'default',
      ephemeral: true,
      mode: 'jit',
    });
    await close();
    runners.push(await GiteaRunnerProcess.start(env));
  }

  /** What was received about a job, read as the webhook reads it. */
  function deliveriesOf(id: number): JobDelivery[] {
    return received.flatMap(({ headers, body }) => {
      const refusal = GITEA_DELIVERIES.rejectHeaders(headers);
      if (refusal !== undefined) throw new Error(JSON.stringify(refusal));
      if (!GITEA_DELIVERIES.isSigned(headers, body, [SECRET])) throw new Error('not signed');
      const read = GITEA_DELIVERIES.read(headers, body, Date.now());
      return 'event' in read && read.event.jobId === String(id) ? [read] : [];
    });
  }

  const actions = (deliveries: readonly JobDelivery[]): string[] =>
    [...new Set(deliveries.map(({ event }) => event.action))].toSorted();

  test('of one job have the same attempt, from queued to completed', async () => {
    const { id, run_id: run } = await gitea.queueJob('acme/app', ['web-r1']);
    await startRunner('web-r1');
    const seen = await untilSeen(
      'all three actions',
      async () => deliveriesOf(id),
      (deliveries) => actions(deliveries).length === 3,
    );
    expect(new Set(seen.map(({ event }) => jobKey(event)))).toEqual(new Set([`${id}/1`]));
    for (const { ciServer, event } of seen) {
      expect(ciServer).toBe('gitea');
      expect(event).toMatchObject({
        runId: String(run),
        repository: 'acme/app',
        labels: ['web-r1'],
      });
    }
    const ended = seen.find(({ event }) => event.action === 'completed');
    expect(ended).toMatchObject({
      event: { conclusion: 'success', runnerName: 'web-r1' },
      runner: { name: 'web-r1', event: { runAttempt: 1 } },
      executionMs: expect.any(Number),
    });
  });

  test('count once in a set, in any order and three times each', async () => {
    const { id } = await gitea.queueJob('acme/app', ['web-r2']);
    await startRunner('web-r2');
    const seen = await untilSeen(
      'all three actions',
      async () => deliveriesOf(id),
      (deliveries) => actions(deliveries).length === 3,
    );
    const events = seen.map(({ event }) => event);
    for (const order of [
      events,
      events.toReversed(),
      [...events.slice(1), ...events.slice(0, 1)],
    ]) {
      const jobs = new SetJobs('linux');
      for (const event of [...order, ...order, ...order]) jobs.applyEvent(event, event.at);
      const { startedTotal, completedTotal, queued, size } = jobs;
      expect({ startedTotal, completedTotal, queued, active: size.active }).toEqual({
        startedTotal: 1,
        completedTotal: 1,
        queued: 0,
        active: 0,
      });
    }
  });

  test('of a job that is canceled before it starts have the attempt with which it was queued', async () => {
    const { id, run_id: run } = await gitea.queueJob('acme/app', ['nobody']);
    await gitea.cancelRun('acme/app', run);
    const seen = await untilSeen(
      'queued and completed',
      async () => deliveriesOf(id),
      (deliveries) => actions(deliveries).length === 2,
    );
    expect(new Set(seen.map(({ event }) => jobKey(event)))).toEqual(new Set([`${id}/1`]));
    const ended = seen.find(({ event }) => event.action === 'completed');
    expect(ended?.event.conclusion).toBe('cancelled');
    expect(ended?.runner).toBeUndefined();
  });
});
