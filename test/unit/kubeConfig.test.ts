import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { stringify } from 'yaml';
import { KubeConfigError, loadKubeConfig } from '../../activities/compute/kubernetes/kubeConfig.ts';
import { namespaceOf } from '../../activities/compute/kubernetes/kubernetesCompute.ts';

const file = (name: string): object => ({
  apiVersion: 'v1',
  kind: 'Config',
  'current-context': name,
  clusters: [{ name, cluster: { server: `https://${name}.example.com` } }],
  users: [{ name, user: { token: 't' } }],
  contexts: [
    { name, context: { cluster: name, user: name, namespace: `${name}-ns` } },
    { name: `${name}-bare`, context: { cluster: name, user: name } },
    { name: `${name}-broken`, context: { cluster: 'absent', user: name } },
  ],
});

describe('loadKubeConfig', () => {
  const keep = {
    KUBECONFIG: process.env['KUBECONFIG'],
    HOME: process.env['HOME'],
    KUBERNETES_SERVICE_HOST: process.env['KUBERNETES_SERVICE_HOST'],
  };
  let folder: string;
  let one: string;
  let two: string;

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'holdfast-kubeconfig-'));
    one = join(folder, 'one.yaml');
    two = join(folder, 'two.yaml');
    await writeFile(one, stringify(file('one')));
    await writeFile(two, stringify(file('two')));
    for (const name of Object.keys(keep)) delete process.env[name];
    process.env['HOME'] = folder;
  });

  afterEach(async () => {
    for (const [name, value] of Object.entries(keep)) {
      if (value === undefined) delete process.env[name];
      else process.env[name] = value;
    }
    await rm(folder, { recursive: true });
  });

  test('a file, its current context and another', () => {
    expect(loadKubeConfig({ path: one }).getCurrentCluster()?.server).toBe(
      'https://one.example.com',
    );
    expect(loadKubeConfig({ path: one, context: 'one-bare' }).getCurrentContext()).toBe('one-bare');
  });

  test('the files of KUBECONFIG', () => {
    process.env['KUBECONFIG'] = `${one}:${two}`;
    expect(loadKubeConfig({ context: 'one' }).getCurrentCluster()?.server).toBe(
      'https://one.example.com',
    );
    expect(loadKubeConfig({ context: 'two' }).getCurrentCluster()?.server).toBe(
      'https://two.example.com',
    );
    expect(loadKubeConfig({ path: two }).getCurrentCluster()?.server).toBe(
      'https://two.example.com',
    );
  });

  test.each<[string, () => unknown, RegExp]>([
    [
      'a missing file',
      () => loadKubeConfig({ path: '/nowhere/config' }),
      /^Cannot read the kubeconfig \/nowhere\/config: ENOENT/,
    ],
    [
      'KUBECONFIG names a missing file',
      () => {
        process.env['KUBECONFIG'] = '/nowhere/config';
        return loadKubeConfig();
      },
      /^Cannot read the kubeconfig \/nowhere\/config: ENOENT/,
    ],
    [
      'no kubeconfig',
      () => loadKubeConfig(),
      /^No cluster: set KUBECONFIG, name a kubeconfig file, or run in a pod/,
    ],
    [
      'a missing context',
      () => loadKubeConfig({ path: one, context: 'three' }),
      /has no context "three" with a cluster; it has one, one-bare, one-broken$/,
    ],
    [
      'a context whose cluster is missing',
      () => loadKubeConfig({ path: one, context: 'one-broken' }),
      /has no context "one-broken" with a cluster/,
    ],
  ])('%s: an error of one line', (_, load, message) => {
    expect(load).toThrow(KubeConfigError);
    expect(load).toThrow(message);
  });

  test.each([
    ['', /^Cannot read the kubeconfig .*one.yaml: expected a document/],
    ['nonsense', /one.yaml has no contexts: is it the right file\?$/],
    ['{', /^Cannot read the kubeconfig .*one.yaml: unexpected end/],
    ['- a', /one.yaml has no contexts/],
  ])('a file with the content %j', async (text, message) => {
    await writeFile(one, text);
    expect(() => loadKubeConfig({ path: one })).toThrow(KubeConfigError);
    expect(() => loadKubeConfig({ path: one })).toThrow(message);
  });

  test("the namespace: configured, else the context's, else default", () => {
    expect(namespaceOf(loadKubeConfig({ path: one }), 'ci')).toBe('ci');
    expect(namespaceOf(loadKubeConfig({ path: one }), undefined)).toBe('one-ns');
    expect(namespaceOf(loadKubeConfig({ path: one, context: 'one-bare' }), undefined)).toBe(
      'default',
    );
  });
});
