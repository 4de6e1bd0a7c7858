/** Whoever may look around, but not into Secrets: nothing of a whole set's life tells a token, a JIT config or the webhook's secret. No codec is used. */
import { createHash } from 'node:crypto';
import {
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect } from '@jest/globals';
import type { WorkflowHandle } from '@temporalio/client';
import { querySetStatus } from '../../activities/runnerSet/querySetStatus.ts';
import {
  RUNNER_SET_WORKFLOW,
  setWorkflowId,
  type RunnerSetInput,
  type RunnerSetStatus,
} from '../../core/contract/index.ts';
import { SHORT_INTERVALS } from '../support/clusterRun.ts';
import { CLUSTER_POLICY, ClusterWorld } from '../support/clusterWorld.ts';
import { CommandRun } from '../support/commandRun.ts';
import { describeWithLab } from '../support/lab.ts';
import { inContainer } from '../support/podLog.ts';
import { readable } from '../support/secretSearch.ts';
import { notifySet } from '../support/setCommands.ts';
import { SHORT_SET_INTERVALS } from '../support/setRun.ts';
import { together } from '../support/together.ts';
import { until } from '../support/until.ts';

const folder = mkdtempSync(join(tmpdir(), 'hf-secrets-'));
const POLICY = join(folder, 'policy.json');
writeFileSync(POLICY, JSON.stringify({ ...CLUSTER_POLICY, secrets: ['proxy-login'] }));
afterAll(() => rmSync(folder, { recursive: true }));

const TIMEOUT_MS = 120_000;
/** Among the processes, it shows that they are seen. */
const SLEEPER = 'sleep 98765';
/** Until it is let go. */
const JOB = `${SLEEPER} & echo begun; until [ -e /tmp/over ]; do sleep 0.2; done; kill $!; echo finished`;

const within = (read: () => string): string => {
  try {
    return read();
  } catch {
    return ''; // the process has gone, or is the kernel's
  }
};

/** What `ps` shows of every process of this machine, in whatever container, and what the path of a core dump of it could be made of (core(5)). */
function processes(): string {
  const ids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  return ids
    .flatMap((id) => [
      ...['cmdline', 'comm'].map((file) =>
        within(() => readFileSync(`/proc/${id}/${file}`, 'utf8').replaceAll('\0', ' ')),
      ),
      ...['exe', 'cwd'].map((link) => within(() => readlinkSync(`/proc/${id}/${link}`))),
    ])
    .join('\n');
}

/** The log of each container of each pod. */
async function podLogs({ namespace: { core, name: namespace } }: ClusterWorld): Promise<string> {
  const { items } = await core.listNamespacedPod({ namespace });
  const logs = items.flatMap(({ metadata, spec }) =>
    [...(spec?.initContainers ?? []), ...(spec?.containers ?? [])].map(
      async ({ name }) =>
        await core.readNamespacedPodLog({ namespace, name: metadata?.name ?? '', container: name }),
    ),
  );
  return (await Promise.all(logs)).join('\n');
}

async function startSet(
  world: ClusterWorld,
  name: string,
  more: Partial<Omit<RunnerSetInput, 'template'>>,
  ephemeral: boolean,
): Promise<WorkflowHandle> {
  const input: RunnerSetInput = {
    name,
    queueCheck: '5s',
    intervals: SHORT_SET_INTERVALS,
    ...more,
    template: {
      organization: 'acme',
      labels: ['self-hosted', name],
      ephemeral,
      intervals: SHORT_INTERVALS,
    },
  };
  return await world.client.workflow.start(RUNNER_SET_WORKFLOW, {
    workflowId: setWorkflowId(name),
    taskQueue: world.taskQueue,
    args: [input],
  });
}

await describeWithLab(
  'secrets during the lifecycle of a set',
  { temporal: true, nodes: 'kubelet' },
  (lab) => {
    together(
      async () =>
        await ClusterWorld.open(lab, {
          settings: { HOLDFAST_LOG_LEVEL: 'trace', HOLDFAST_POD_POLICY_FILE: POLICY },
        }),
      {
        'is told without a secret: in histories, logs, metrics, pods, the list of processes and the paths of core dumps':
          async (world) => {
            const { simulator, namespace } = world;
            // Errors are logged with all details.
            simulator.addFault({
              kind: 'forbidden',
              endpoint: 'POST /orgs/acme/actions/runners/*',
              count: 1,
            });
            simulator.addFault({
              kind: 'status',
              status: 500,
              endpoint: 'POST /orgs/acme/actions/runners/*',
              count: 1,
            });
            const names = [`one-job-${namespace.name}`, `static-${namespace.name}`] as const;
            const sets = [
              await startSet(world, names[0], { minIdle: 0, max: 2 }, true),
              await startSet(world, names[1], { replicas: 1 }, false),
            ];
            const status = async (set: WorkflowHandle): Promise<RunnerSetStatus> =>
              await querySetStatus(world.client, set.workflowId);
            for (const set of sets)
              await until('the set to run', async () => (await status(set)).labels.length > 0);
            const jobs = names.map((name) =>
              simulator.queueJob({ repo: 'acme/app', labels: ['self-hosted', name], command: JOB }),
            );
            for (const { id } of jobs)
              await simulator.waitFor(
                () => simulator.job(id)?.output.includes('begun') === true,
                'the job to begin',
                TIMEOUT_MS,
              );

            let seen = '';
            await until('the jobs among the processes', () =>
              (seen = processes()).includes(SLEEPER),
            );
            let logs = '';
            // Of a container that has just started the API server may know nothing yet.
            await until('the log of each container', async () =>
              (logs = await podLogs(world)).includes('Listening for Jobs'),
            );
            let metrics = '';
            await until('the metrics of the set', async () =>
              (metrics = await (
                await fetch(`${await world.worker.started()}/metrics`)
              ).text()).includes(names[0]),
            );
            const texts = { processes: seen, 'logs of pods': logs, metrics };
            expect(world.worker.log.map(({ level }) => level)).toContain('debug');
            expect(world.recorder.secretValues(['ACTIONS_RUNNER_INPUT_JITCONFIG'])).not.toEqual([]);
            expect(world.recorder.secretValues(['RUNNER_TOKEN'])).not.toEqual([]);

            for (const { metadata } of (
              await namespace.core.listNamespacedPod({ namespace: namespace.name })
            ).items)
              await inContainer(namespace, metadata?.name ?? '', 'touch /tmp/over');
            for (const { id } of jobs)
              await simulator.waitFor(
                () => simulator.job(id)?.conclusion === 'success',
                'the job to end',
                TIMEOUT_MS,
              );
            for (const name of names)
              await notifySet(world.client, name, { command: 'drain', reason: 'the test is over' });
            for (const set of sets) await set.result();
            expect(
              await world.secretsInClear({
                ...texts,
                'metrics at the end': await (
                  await fetch(`${await world.worker.started()}/metrics`)
                ).text(),
              }),
            ).toEqual([]);
          },
        'a runner is told its proxy and its authorities, and nobody else the login': async (
          world,
        ) => {
          const { core, name: namespace } = world.namespace;
          const login = { username: 'bot', password: 'pr0xy%40word' };
          await core.createNamespacedSecret({
            namespace,
            body: { metadata: { name: 'proxy-login' }, stringData: login },
          });
          await core.createNamespacedConfigMap({
            namespace,
            body: { metadata: { name: 'acme-ca' }, data: { 'root.pem': 'the authority' } },
          });
          const sum = createHash('sha256')
            .update(`http://${login.username}:${login.password}@proxy.acme.com:3128`)
            .digest('hex');
          const checks = [
            `"$(printf %s "$https_proxy" | sha256sum)" = "${sum}  -"`,
            '"$HTTPS_PROXY" = "$https_proxy"',
            '"$no_proxy" = .acme.com',
            '"$(cat "$SSL_CERT_FILE")" = "the authority"',
            '"$NODE_EXTRA_CA_CERTS" = "$SSL_CERT_FILE"',
            '"$GIT_SSL_CAINFO" = "$SSL_CERT_FILE"',
          ];
          const script = checks
            .map((check, index) => `[ ${check} ] || exit ${index + 11}`)
            .join('; ');
          const proxy = {
            https: { url: 'http://proxy.acme.com:3128', credentialSecretRef: 'proxy-login' },
            noProxy: ['.acme.com'],
          };
          const life = await CommandRun.start(world, 'proxied', script, {
            proxy,
            ca: { configMapKeyRef: { name: 'acme-ca', key: 'root.pem' } },
          });
          expect(await life.ends()).toMatchObject({ outcome: 'succeeded', exitCode: 0 });
          const texts = [
            readable(await life.run.handle.fetchHistory()),
            JSON.stringify(life.podVersions()),
            JSON.stringify(world.worker.log),
          ];
          expect(texts.filter((text) => text.includes('proxied'))).toHaveLength(3);
          expect(texts.filter((text) => text.includes(login.password))).toEqual([]);
          await core.deleteNamespacedSecret({ namespace, name: 'proxy-login' });
        },
      },
      { afterwards: { 'nothing is left': async (world) => await world.expectNothingLeft() } },
    );
  },
);
