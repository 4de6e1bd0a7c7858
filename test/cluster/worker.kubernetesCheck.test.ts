import { execFileSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { parse, stringify } from 'yaml';
import { resolveBinary } from '../../tools/lab/resolve.ts';
import { checkCompute } from '../../worker/checks/computeCheck.ts';
import { loadConfig, type HoldfastConfig } from '../../worker/settings/config.ts';
import { describeIf, ensureLab } from '../support/lab.ts';
import { untilSeen } from '../support/until.ts';

/** As far as this test writes it. */
interface KubeConfigFile {
  clusters: { cluster: { server: string } }[];
  users: { user: Record<string, unknown> }[];
}

// kubectl may have to be built first, which takes minutes, once.
const prepare = async () => ({
  lab: await ensureLab({ kubernetes: true }),
  kubectl: await resolveBinary('kubectl'),
});

await describeIf('the check of the cluster', prepare, { kubernetes: true }, ({ lab, kubectl }) => {
  const admin = lab.kubernetes?.kubeconfig ?? '';
  const server = lab.kubernetes?.server ?? '';
  let folder: string;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'holdfast-check-'));
  });
  afterAll(async () => await rm(folder, { recursive: true }));

  function kubeconfig(change: (file: KubeConfigFile) => void): string {
    const file = parse(readFileSync(admin, 'utf8')) as KubeConfigFile;
    change(file);
    const path = join(folder, randomUUID());
    writeFileSync(path, stringify(file));
    return path;
  }
  const config = (path: string, more: Record<string, string> = {}): HoldfastConfig =>
    loadConfig({ HOLDFAST_GITHUB_TOKEN: 'x', HOLDFAST_KUBECONFIG: path, ...more });

  test('an administrator passes', async () => {
    expect(await checkCompute(config(admin))).toEqual([
      {
        level: 'ok',
        message: expect.stringMatching(
          `^Kubernetes at ${server}: .* has all permissions in namespace "default"$`,
        ),
      },
    ]);
  });

  test('a missing permission is reported, and the suggested command fixes it', async () => {
    const user = `poor-${randomUUID().slice(0, 8)}`;
    const namespace = `check-${randomUUID().slice(0, 8)}`;
    execFileSync(kubectl, ['--kubeconfig', admin, 'create', 'namespace', namespace]);
    const poor = config(
      kubeconfig((file) => Object.assign(file.users[0]?.user ?? {}, { as: user })),
      // Patch pods is needed all the same: a runner's image may have the supervisor.
      { HOLDFAST_KUBERNETES_NAMESPACE: namespace, HOLDFAST_SWEEP_INTERVAL: 'off' },
    );

    const [finding, ...others] = await checkCompute(poor);
    expect(others).toEqual([]);
    expect(finding?.level).toBe('error');
    expect(finding?.message).toMatch(
      new RegExp(
        `^Kubernetes permissions missing: ${user} may not, in namespace "${namespace}": create pods, .*patch pods, .*delete secrets, .*delete persistentvolumeclaims, get namespaces "kube-system"$`,
      ),
    );
    execFileSync('sh', ['-c', finding?.fix ?? 'false'], {
      env: {
        ...process.env,
        KUBECONFIG: admin,
        PATH: `${join(kubectl, '..')}:${process.env['PATH']}`,
      },
    });
    // The API server applies new rules a moment later.
    const [fixed, ...more] = await untilSeen(
      'the new permissions to be in force',
      async () => await checkCompute(poor),
      ([first]) => first?.level === 'ok',
    );
    expect(fixed?.message).toContain(`${user} has all permissions`);
    expect(more).toEqual([]);
  });

  test.each<[string, Record<string, string>, (file: KubeConfigFile) => void, RegExp]>([
    [
      'a context that is not there',
      { HOLDFAST_KUBE_CONTEXT: 'prod' },
      () => undefined,
      /^HOLDFAST_KUBECONFIG, HOLDFAST_KUBE_CONTEXT: .*no context "prod"/,
    ],
    [
      'a server that does not answer',
      {},
      (file) => Object.assign(file.clusters[0]?.cluster ?? {}, { server: 'https://127.0.0.1:1' }),
      /^HOLDFAST_KUBECONFIG: the Kubernetes API server at https:\/\/127.0.0.1:1 does not answer our questions: /,
    ],
    [
      'credentials that it does not take',
      {},
      (file) => file.users.splice(0, 1, { ...file.users[0], user: { token: 'wrong' } }),
      /^HOLDFAST_KUBECONFIG: the Kubernetes API server at .* does not answer our questions: (.*)(401|Unauthorized)/,
    ],
  ])('%s: one line with the setting and a fix', async (_what, more, change, expected) => {
    const [finding] = await checkCompute(config(kubeconfig(change), more));
    expect(finding).toEqual({
      level: 'error',
      message: expect.stringMatching(expected),
      fix: expect.stringMatching(/./),
    });
    expect(finding?.message).not.toContain('\n');
  });
});
