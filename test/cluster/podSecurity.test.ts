/** The levels that `holdfast migrate arc` prints, as the Pod Security admission of a real API server decides. */
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { ApiException, CoreV1Api, type V1PodSpec } from '@kubernetes/client-node';
import type { PodSecurityLevel } from '../../cli/migrate/podSecurityLevel.ts';
import { loadKubeConfig } from '../../activities/compute/kubernetes/kubeConfig.ts';
import { describeWithLab } from '../support/lab.ts';
import { POD_SECURITY_CASES } from '../support/podSecurityCases.ts';
import { until } from '../support/until.ts';

const LEVELS: readonly PodSecurityLevel[] = ['privileged', 'baseline', 'restricted'];

await describeWithLab('levels of Pod Security', { kubernetes: true }, (lab) => {
  const core = loadKubeConfig({ path: lab.kubernetes!.kubeconfig }).makeApiClient(CoreV1Api);
  const prefix = `level-${randomUUID().slice(0, 8)}`;
  const namespaceOf = (level: PodSecurityLevel): string => `${prefix}-${level}`;

  /** @returns whether a namespace of the level accepts the pod */
  async function accepts(level: PodSecurityLevel, spec: V1PodSpec): Promise<boolean> {
    try {
      await core.createNamespacedPod({
        namespace: namespaceOf(level),
        dryRun: 'All',
        body: { metadata: { name: 'runner' }, spec: withImages(spec) },
      });
      return true;
    } catch (error) {
      if (!(error instanceof ApiException)) throw error;
      const { message } = JSON.parse(String(error.body)) as { message: string };
      if (!message.includes('violates PodSecurity')) throw error;
      return false;
    }
  }

  beforeAll(async () => {
    for (const level of LEVELS)
      await core.createNamespace({
        body: {
          metadata: {
            name: namespaceOf(level),
            labels: { 'pod-security.kubernetes.io/enforce': level },
          },
        },
      });
    await until('the level to be enforced, and the service account to be there', async () => {
      const hostNetwork: V1PodSpec = { hostNetwork: true, containers: [{ name: 'a' }] };
      const tries = LEVELS.map(async (level) => await accepts(level, hostNetwork));
      const result = await Promise.all(tries).catch(() => undefined);
      return JSON.stringify(result) === '[true,false,false]';
    });
  });
  afterAll(async () => {
    for (const level of LEVELS) await core.deleteNamespace({ name: namespaceOf(level) });
  });

  test.each(POD_SECURITY_CASES)('%s', async (_what, pod, lowest) => {
    const answers = await Promise.all(LEVELS.map(async (level) => await accepts(level, pod)));
    expect(answers).toEqual(LEVELS.map((level) => LEVELS.indexOf(level) <= LEVELS.indexOf(lowest)));
  });
});

function withImages(spec: V1PodSpec): V1PodSpec {
  const copy = structuredClone(spec);
  for (const container of [...(copy.initContainers ?? []), ...copy.containers])
    container.image = 'runner:1';
  return copy;
}
