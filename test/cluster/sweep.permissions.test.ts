/** The manifest of the sweep without a worker: an API server takes it, and its account may do what a sweep does, and nothing that none does. */
import { readFile } from 'node:fs/promises';
import type { KubeConfig } from '@kubernetes/client-node';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { parseAllDocuments } from 'yaml';
import type { KubernetesCompute } from '../../activities/compute/kubernetes/kubernetesCompute.ts';
import { loadConfig } from '../../worker/settings/config.ts';
import { actAs, applyManifest, awaitRoles } from '../support/clusterAccounts.ts';
import { describeWithLab } from '../support/lab.ts';
import { SweepWorld } from '../support/sweepWorld.ts';

interface Rule {
  resources: string[];
  verbs: string[];
}
interface CronJob {
  spec: {
    concurrencyPolicy: string;
    jobTemplate: {
      spec: {
        template: {
          spec: {
            serviceAccountName: string;
            securityContext: object;
            containers: {
              command: string[];
              env: { name: string; value: string }[];
              securityContext: object;
            }[];
          };
        };
      };
    };
  };
}

await describeWithLab('deploy/sweep.yaml', { temporal: true, kubernetes: true }, (lab) => {
  let world: SweepWorld;
  let manifest: string;
  let account: KubeConfig;

  beforeEach(async () => {
    world = await SweepWorld.open(lab);
    const { harness } = world;
    const written = await readFile(new URL('../../deploy/sweep.yaml', import.meta.url), 'utf8');
    // As its own head says; the installation of this test is another, too.
    manifest = written
      .replaceAll(/namespace: holdfast(-runners)?\n/g, `namespace: ${harness.namespace}\n`)
      .replaceAll('sweep-in-holdfast\n', `sweep-in-${harness.namespace}\n`)
      .replaceAll('holdfast-sweep-holdfast', 'holdfast-sweep-contract');
    await applyManifest(harness.kubeConfig, manifest);
    account = await actAs('holdfast-sweep', harness);
  });
  afterEach(async () => await world.close());

  const documents = (): unknown[] =>
    parseAllDocuments(manifest).map((document) => document.toJS() as unknown);

  test('its account has exactly the permissions of a sweep', async () => {
    const used = new Set<string>();
    const compute: KubernetesCompute = world.harness.instance({
      kubeConfig: account,
      onRequest: ({ verb, resource }) => used.add(`${verb} ${resource}`),
    });
    await awaitRoles(account, manifest);
    await compute.location();

    const alive = await world.terminated();
    const { pod } = await world.provision(alive);
    const gone = await world.terminated();
    await world.harness.compute.storeRegistrationSecret(
      gone.identity,
      await world.register(gone.runnerName),
    );
    const volumeClaims = [{ name: 'work', mountPath: '/work', storage: '1Gi' }];
    const withClaim = await world.terminated();
    const lost = await world.run(withClaim, undefined, { volumeClaims });
    await world.harness.vanish(lost);

    const { ownedObjects } = compute;
    for (const done of ['marked', 'repaired']) {
      const marks = await ownedObjects?.loadMarks();
      expect(marks).toHaveLength(done === 'marked' ? 0 : 1);
      world.marks = marks ?? [];
      const { findings, incompleteLists, skippedLists } = await world.sweep({}, { compute });
      expect({
        incomplete: incompleteLists,
        unseen: skippedLists,
        items: findings.map((item) => `${item.status} ${item.kind}`).toSorted(),
      }).toEqual({
        incomplete: [],
        unseen: [],
        items: [
          `${done} orphaned_pod`,
          `${done} orphaned_registration`,
          ...Array.from({ length: 2 }, () => `${done} orphaned_resource`),
        ],
      });
      await ownedObjects?.saveMarks(world.marks);
    }
    await world.harness.finishTermination(pod);
    expect(await world.names()).toEqual({ pods: [], secrets: [], claims: [] });

    const rules = documents().flatMap(
      (document) => (document as { kind: string; rules?: Rule[] }).rules ?? [],
    );
    const granted = rules.flatMap(({ resources, verbs }) =>
      resources.flatMap((resource) => verbs.map((verb) => `${verb} ${resource}`)),
    );
    expect([...used].toSorted()).toEqual([...new Set(granted)].toSorted());
  });

  test('its CronJob runs the command without a worker, one at a time, as an unprivileged user, with valid settings', () => {
    const { spec } = documents().find(
      (document) => (document as { kind: string }).kind === 'CronJob',
    ) as CronJob;
    const { serviceAccountName, securityContext, containers } = spec.jobTemplate.spec.template.spec;
    const [container] = containers;
    expect({
      policy: spec.concurrencyPolicy,
      serviceAccountName,
      securityContext,
      command: container?.command,
      container: container?.securityContext,
    }).toMatchObject({
      policy: 'Forbid',
      serviceAccountName: 'holdfast-sweep',
      securityContext: { runAsNonRoot: true },
      command: ['holdfast', 'sweep', '--standalone'],
      container: {
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ['ALL'] },
      },
    });
    const env = Object.fromEntries((container?.env ?? []).map(({ name, value }) => [name, value]));
    expect(loadConfig(env)).toMatchObject({ installation: 'holdfast', warnings: [] });
  });
});
