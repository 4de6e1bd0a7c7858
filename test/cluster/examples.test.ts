/** Each file of examples/: as the command reads it, before the pod policy beside it, and as a pod before a real API server. */
import { randomUUID } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { CoreV1Api } from '@kubernetes/client-node';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { parse } from 'yaml';
import { GITHUB_RUNNER } from '../../core/domain/runnerKinds/gitHub.ts';
import { RUNNER_KINDS } from '../../core/domain/runnerKinds/runnerKinds.ts';
import { loadKubeConfig } from '../../activities/compute/kubernetes/kubeConfig.ts';
import { podSpec, type PodDefaults } from '../../activities/compute/kubernetes/podSpec.ts';
import {
  policyViolations,
  toPolicyInput,
  installationImages,
} from '../../activities/compute/kubernetes/podPolicy/policyViolations.ts';
import {
  podPolicySchema,
  DEFAULT_POD_POLICY,
  type PodPolicy,
} from '../../activities/compute/kubernetes/podPolicy/podPolicy.ts';
import { scheduleError } from '../../activities/runnerSet/schedules.ts';
import type { PodRequest } from '../../core/domain/pod.ts';
import { parseJobInput } from '../../core/input/job.ts';
import { parseRunnerSetInput } from '../../core/input/runnerSet.ts';
import { describeWithLab } from '../support/lab.ts';
import { until } from '../support/until.ts';

const EXAMPLES = new URL('../../examples/', import.meta.url);
const read = (path: string): unknown =>
  parse(readFileSync(new URL(path, EXAMPLES), 'utf8'), { merge: true });
const filesIn = (folder: string): string[] => readdirSync(new URL(folder, EXAMPLES)).toSorted();
const SETS = filesIn('sets/');

/** Defaults of a worker for runners of this CI server, whose image it has (docs/gitea.md). */
function defaultsFor({ supervision }: PodRequest): PodDefaults {
  const { image = GITHUB_RUNNER.image } = RUNNER_KINDS[supervision?.runnerKind ?? 'github'];
  const { name, command, user } = image;
  return { image: name, command, user, supervisor: { image: 'example.com/supervisor:1' } };
}

/** What a worker would make of the set's template. */
function requestOf(file: string): PodRequest {
  const parsed = parseRunnerSetInput(read(`sets/${file}`), {
    hash: () => '',
    checkSchedule: scheduleError,
    policy: {},
  });
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.errors));
  expect(parsed.spec.runner.warnings).toEqual([]);
  return {
    ...parsed.spec.runner.pod,
    identity: { workflowId: 'runner-example', firstRunId: randomUUID(), attempt: 1 },
  };
}

function refusals(file: string, policy: PodPolicy): string[] {
  const request = requestOf(file);
  const defaults = defaultsFor(request);
  return policyViolations(
    toPolicyInput(podSpec(request, defaults, 'holdfast', undefined), request, 'holdfast'),
    policy,
    { images: installationImages(defaults), namespaces: ['holdfast'] },
  );
}

await describeWithLab('examples', { kubernetes: true }, (lab) => {
  const namespace = `examples-${randomUUID().slice(0, 8)}`;
  let core: CoreV1Api;

  beforeAll(async () => {
    core = loadKubeConfig({ path: lab.kubernetes!.kubeconfig }).makeApiClient(CoreV1Api);
    await core.createNamespace({ body: { metadata: { name: namespace } } });
    for (const name of ['default', 'job-pods']) {
      if (name !== 'default')
        await core.createNamespacedServiceAccount({ namespace, body: { metadata: { name } } });
      await until(`the account ${name}`, async () =>
        (await core.listNamespacedServiceAccount({ namespace })).items.some(
          ({ metadata }) => metadata?.name === name,
        ),
      );
    }
  });
  afterAll(async () => void (await core.deleteNamespace({ name: namespace })));

  test.each(SETS)('the API server takes a runner of %s', async (file) => {
    const request = requestOf(file);
    const body = podSpec(request, defaultsFor(request), 'holdfast', {
      secretName: 's',
      keys: [GITHUB_RUNNER.registration.token.variable],
    });
    await expect(
      core.createNamespacedPod({ namespace, body, dryRun: 'All' }),
    ).resolves.toMatchObject({ kind: 'Pod' });
  });

  test.each(SETS)('%s may be by the policy beside it, and needs it', (file) => {
    const hasPolicy = existsSync(new URL(`policies/${file}`, EXAMPLES));
    const policy = hasPolicy ? podPolicySchema.parse(read(`policies/${file}`)) : DEFAULT_POD_POLICY;
    expect(refusals(file, policy)).toEqual([]);
    expect(refusals(file, DEFAULT_POD_POLICY).length > 0).toBe(hasPolicy);
  });

  test.each(filesIn('jobs/'))('%s is a job', (file) => {
    expect(
      parseJobInput(read(`jobs/${file}`), { workflowId: 'job-example', policy: {} }),
    ).toMatchObject({ ok: true });
  });

  test('the table lists exactly the existing files', () => {
    const linked = [
      ...readFileSync(new URL('README.md', EXAMPLES), 'utf8').matchAll(
        /\]\(((?:sets|jobs|policies)\/[\w-]+\.yaml)\)/g,
      ),
    ].map(([, path]) => path);
    expect(new Set(linked)).toEqual(
      new Set(
        ['jobs/', 'policies/', 'sets/'].flatMap((folder) =>
          filesIn(folder).map((file) => `${folder}${file}`),
        ),
      ),
    );
  });
});
