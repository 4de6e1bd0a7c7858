/** From a signed delivery about a push or a pull request to the run that it starts. */
import { randomUUID } from 'node:crypto';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { sign } from '@octokit/webhooks-methods';
import { Client, Connection } from '@temporalio/client';
import { fastify, type FastifyInstance } from 'fastify';
import { pino } from 'pino';
import { deleteDefinitionSignal, groupedJobId } from '../../core/contract/index.ts';
import { runningJobDefinitions } from '../../core/domain/visibility.ts';
import { CoveringSets } from '../../worker/webhook/setDirectory.ts';
import { WEBHOOK_PATH, registerWebhook } from '../../worker/webhook/webhook.ts';
import { DefinitionRun } from '../support/definitionRun.ts';
import { JobRun, playsByItself, step } from '../support/jobRun.ts';
import { describeWithLab } from '../support/lab.ts';
import { memoryWorld, type MemoryWorld } from '../support/memoryWorld.ts';
import { until } from '../support/until.ts';

const SECRET = "It's a Secret to Everybody";
const logger = pino({ level: 'silent' });
const sha = (letter: string): string => letter.repeat(40);

await describeWithLab('the webhook, for declared jobs', { temporal: true }, (lab) => {
  let all: MemoryWorld;
  let job: DefinitionRun;
  let server: FastifyInstance;
  let client: () => Client;
  let outcomes: string[];

  beforeEach(async () => {
    all = await memoryWorld(lab);
    job = new DefinitionRun(all);
    outcomes = [];
    client = () => all.world.client;
    server = fastify();
    const ports = { client: () => client(), taskQueue: all.world.taskQueue, logger };
    await registerWebhook(server, {
      ...ports,
      sets: new CoveringSets(ports),
      secrets: () => [SECRET],
      onDelivery: (outcome) => outcomes.push(outcome),
    });
  });
  afterEach(async () => {
    await server.close();
    await all.world.close();
  });

  const declared = async (...args: Parameters<DefinitionRun['apply']>): Promise<void> => {
    await job.apply(...args);
    await job.reaches('it to hold', ({ generation }) => generation > 0);
    await until(
      'it to be listed',
      async () =>
        (
          await all.world.client.workflow.count(
            `${runningJobDefinitions(all.world.taskQueue)} AND WorkflowId = '${job.id}'`,
          )
        ).count === 1,
    );
  };
  async function deliver(
    event: string,
    body: object,
    { id = randomUUID(), secret = SECRET }: { id?: string; secret?: string } = {},
  ): Promise<number> {
    const payload = JSON.stringify(body);
    const headers = {
      'content-type': 'application/json',
      'x-github-event': event,
      'x-github-delivery': id,
      'x-hub-signature-256': await sign(secret, payload),
    };
    return (await server.inject({ method: 'POST', url: WEBHOOK_PATH, payload, headers }))
      .statusCode;
  }
  const push = (commit: string, more: object = {}, repository = 'Acme/Web'): object => ({
    ref: 'refs/heads/main',
    after: commit,
    deleted: false,
    forced: false,
    commits: [{ added: ['src/a.ts'], removed: [], modified: [] }],
    repository: { full_name: repository, pushed_at: Math.floor(Date.now() / 1_000) },
    ...more,
  });
  const pull = (
    number: number,
    commit: string,
    { head = 'Acme/Web', association = 'MEMBER' } = {},
    action = 'opened',
  ): object => ({
    action,
    pull_request: {
      number,
      updated_at: new Date().toISOString(),
      author_association: association,
      head: { sha: commit, repo: { full_name: head } },
      base: { ref: 'main' },
    },
    repository: { full_name: 'Acme/Web' },
  });
  const run = (changeSet: number | string, generation = 1): JobRun =>
    JobRun.of(all, groupedJobId(job.group(changeSet), generation));

  test('a push and a pull request start their runs; a repetition starts none', async () => {
    playsByItself(all.compute, 'end');
    await declared();
    const id = randomUUID();
    const pushed = push(sha('a'));
    for (let again = 0; again < 2; again++) expect(await deliver('push', pushed, { id })).toBe(202);
    expect(await deliver('push', push(sha('a')))).toBe(202); // sent again to another replica, say
    expect(await deliver('pull_request', pull(7, sha('b')))).toBe(202);
    expect(await deliver('pull_request', pull(7, sha('c'), {}, 'closed'))).toBe(204);
    expect(await deliver('push', push('0'.repeat(40), { deleted: true }))).toBe(204);
    const { ended, leftOut } = await job.reaches(
      'both are over',
      (now) => now.ended.length >= 2 && now.running.length === 0,
    );
    expect(new Set(ended.map(({ version, outcome }) => `${version} ${outcome}`))).toEqual(
      new Set([`${sha('a')} succeeded`, `${sha('b')} succeeded`]),
    );
    expect(leftOut).toEqual([]);
    expect(outcomes).toEqual([
      'accepted',
      'repeated',
      'accepted',
      'accepted',
      'other_action',
      'other_action',
    ]);
    expect(all.compute.created.map(({ identity }) => identity.workflowId).toSorted()).toEqual(
      [
        `${groupedJobId(job.group('main'), 1)}-test-1`,
        `${groupedJobId(job.group(7), 1)}-test-1`,
      ].toSorted(),
    );
  });

  test.each([
    ["of a fork, also of a member's", { head: 'mona/Web', association: 'MEMBER' }],
    ['of somebody who does not belong there', { association: 'CONTRIBUTOR' }],
  ])(
    'a pull request %s starts nothing, or, where the job is for outsiders, a run without Secrets',
    async (_what, who) => {
      playsByItself(all.compute, 'end');
      const test = [
        step('unit', {
          volumes: [{ name: 'cloud', mountPath: '/cloud', secret: { secretName: 'cloud' } }],
        }),
      ];
      await declared({ test });
      expect(await deliver('pull_request', pull(7, sha('e'), who))).toBe(202);
      expect(
        (await job.reaches('it to be left out', (now) => now.leftOut.length === 1)).leftOut[0]?.why,
      ).toContain("an outsider's");
      expect(all.compute.created).toEqual([]);
      await job.apply({ test, untrusted: true });
      await job.reaches('it to hold', ({ generation }) => generation === 2);
      expect(await deliver('pull_request', pull(7, sha('f'), who, 'synchronize'))).toBe(202);
      await job.reaches('it to be over', (now) => now.ended.length === 1);
      const [request] = run(7).requests('test-1');
      expect(request).toMatchObject({ untrusted: true, env: { JOB_COMMIT: sha('f') } });
      expect(JSON.stringify(request)).not.toContain('secretName');
    },
  );

  test("a repository without a declared job is nobody's, also when its job has ended; another's signature is refused", async () => {
    await declared();
    expect(await deliver('push', push(sha('a'), {}, 'acme/other'))).toBe(204);
    expect(await deliver('push', push(sha('a')), { secret: 'guess' })).toBe(401);
    await job.handle.signal(deleteDefinitionSignal);
    await job.handle.result();
    expect(await deliver('push', push(sha('a')))).toBe(204);
    expect(outcomes).toEqual(['not_ours', 'bad_signature', 'not_ours']);
    expect(all.compute.created).toEqual([]);
  });

  test('one that was declared a moment ago is found', async () => {
    expect(await deliver('push', push(sha('a')))).toBe(204);
    await declared({ on: { push: {} } });
    await until('it to be seen', async () => (await deliver('push', push(sha('b')))) === 202);
    await job.reaches('it to run', (now) => now.running.length === 1);
  });

  test('while Temporal is away it is asked to come again', async () => {
    const away = Connection.lazy({
      address: '127.0.0.1:1',
      connectTimeout: '1s',
      interceptors: [],
    });
    client = () => new Client({ connection: away });
    expect(await deliver('push', push(sha('a')))).toBe(503);
    await away.close();
  });
});
