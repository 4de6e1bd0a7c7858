import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from '@jest/globals';
import { parseAllDocuments, stringify } from 'yaml';
import { admitSets } from '../../cli/set/setAdmission.ts';
import { readSetDocuments } from '../../cli/set/setDocuments.ts';
import type { RunnerSetInput } from '../../core/contract/index.ts';
import { runCli, type CliRun } from '../support/cli.ts';

const folder = mkdtempSync(join(tmpdir(), 'hf-migrate-'));
afterAll(() => rmSync(folder, { recursive: true }));
let files = 0;
const path = (name: string): string => join(folder, name);
const file = (text: string): string => {
  const name = path(`arc-${files++}.yaml`);
  writeFileSync(name, text);
  return name;
};
const migrate = async (text: string, ...more: string[]): Promise<CliRun> =>
  await runCli(['migrate', 'arc', '-f', file(text), ...more]);
/** The text with each comment on one line. */
const unwrapped = (text: string): string => text.replaceAll(/\n *# {3}/g, ' ');
/** The documents as `set apply` reads them. */
const applied = (text: string): RunnerSetInput[] =>
  admitSets(readSetDocuments(text, 'f'), 'f').map(({ input }) => input);

const LEGACY = `
apiVersion: v1
kind: ConfigMap
metadata: { name: other }
---
apiVersion: actions.summerwind.dev/v1alpha1
kind: RunnerDeployment
metadata: { name: linux, namespace: ci }
spec:
  template:
    spec:
      organization: acme
      labels: [linux]
      dockerEnabled: false
      workDir: /work
      group: gpu
      image: acme/runner:1
      env:
        - { name: TOKEN, valueFrom: { secretKeyRef: { name: npm, key: token } } }
---
apiVersion: actions.summerwind.dev/v1alpha1
kind: HorizontalRunnerAutoscaler
metadata: { name: linux-hra, namespace: ci }
spec: { scaleTargetRef: { name: linux }, minReplicas: 1, maxReplicas: 9 }
`;
const VALUES =
  'githubConfigUrl: https://github.com/acme\ngithubConfigSecret: { github_token: ghp_verySecret }\nminRunners: 1\nmaxRunners: 5\ncontainerMode: { type: dind }\n';

test.each<[format: string, written: (set: { name: string; template: object }) => object[]]>([
  [
    'runnerset',
    ({ name, ...spec }) => [
      { apiVersion: 'holdfast.dev/v1alpha1', kind: 'RunnerSet', metadata: { name }, spec },
    ],
  ],
  [
    'chart',
    ({ name, template }) => [
      {
        sets: [
          {
            name,
            githubConfigUrl: 'https://github.com/acme',
            minRunners: 1,
            maxRunners: 9,
            set: { template },
          },
        ],
      },
    ],
  ],
])('--format %s has the same sets', async (format, written) => {
  const sets = applied((await migrate(LEGACY)).stdout);
  const { status, stdout } = await migrate(LEGACY, '--format', format);
  expect(status).toBe(0);
  const documents = parseAllDocuments(stdout).map((document) => document.toJS() as unknown);
  const [set] = sets;
  expect(documents).toMatchObject(written(set!));
  // Comments are at their fields in each format.
  expect(unwrapped(stdout)).toMatch(/^ *# .*workDir: .*\n/m);
  expect(unwrapped(stdout)).toContain('# From ');
});

describe('to standard output', () => {
  test('sets that "set apply" accepts, with comments in place, and the plan before them', async () => {
    const { status, stdout, stderr } = await migrate(LEGACY);
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    expect(applied(stdout)).toEqual([
      {
        name: 'linux',
        paused: true,
        minIdle: 1,
        max: 9,
        template: {
          organization: 'acme',
          labels: ['self-hosted', 'linux'],
          runnerGroup: 'gpu',
          pod: {
            spec: {
              containers: [
                {
                  name: 'runner',
                  env: [
                    { name: 'TOKEN', valueFrom: { secretKeyRef: { name: 'npm', key: 'token' } } },
                  ],
                },
              ],
            },
          },
        },
      },
    ]);
    const [plan = '', set = ''] = unwrapped(stdout).split('\n---\n');
    expect(plan.split('\n').every((line) => line.startsWith('# '))).toBe(true);
    expect(set).toMatch(
      /^# From .*document 2, RunnerDeployment ci\/linux; size from .*document 3, HorizontalRunnerAutoscaler ci\/linux-hra\n\nname: linux\n/,
    );
    expect(set).toMatch(
      /\n# HorizontalRunnerAutoscaler linux-hra: spec\.minReplicas: .*\nminIdle: 1\n/,
    );
    expect(set).toMatch(
      /\n# spec\.template\.spec\.workDir: left out: .*\n# DECIDE: spec\.template\.spec\.image: "acme\/runner:1" is left out: .*\ntemplate:\n/,
    );
  });

  test('the plan names open decisions, settings of the worker, omitted fields and runners to drain', async () => {
    const { stdout } = await migrate(LEGACY);
    const plan = unwrapped(stdout).split('\n---\n')[0];
    expect(plan).toMatch(
      /Left out \(no runners come from this kind: it stays as it is\): .*ConfigMap other/,
    );
    expect(plan).toMatch(/linux is written "paused: true"/);
    expect(plan).toMatch(/Secret npm/);
    expect(plan).toMatch(
      /pod policy \(HOLDFAST_POD_POLICY_FILE;.*\) has to allow more by: secrets\. As YAML: \{ secrets: \[ npm \] \}\./,
    );
    expect(plan).toMatch(/Labels of linux may be shared/);
    expect(plan).not.toMatch(/scale sets are labels/);
    expect(plan).toContain(
      `kubectl -n ci delete horizontalrunnerautoscaler linux-hra; kubectl -n ci patch runnerdeployment linux --type merge -p '{"spec":{"replicas":0}}'`,
    );
  });

  test('a scale set is adopted by name, without a webhook; secrets are not copied', async () => {
    const { stdout } = await migrate(VALUES, '--release', 'arc-linux');
    expect(stdout).not.toContain('ghp_verySecret');
    expect(applied(stdout)).toMatchObject([
      {
        name: 'arc-linux',
        minIdle: 1,
        max: 5,
        template: {
          organization: 'acme',
          labels: ['arc-linux'],
          demand: 'scaleSet',
          scaleSet: { name: 'arc-linux', adopt: true },
        },
      },
    ]);
    const plan = unwrapped(stdout).split('\n---\n')[0];
    expect(plan).toMatch(/arc-linux takes over ARC's scale sets by name/);
    expect(plan).not.toContain('add a webhook');
    expect(plan).toMatch(
      /pod policy \(HOLDFAST_POD_POLICY_FILE;.*\) has to allow more by: images, privileged\. As YAML: \{ images: \[ docker:dind \], privileged: true \}\./,
    );
    expect(plan).not.toMatch(/Labels of .* may be shared/);
  });

  test('several files, and lists in them', async () => {
    const list = stringify({
      apiVersion: 'v1',
      kind: 'List',
      items: [
        {
          apiVersion: 'actions.github.com/v1alpha1',
          kind: 'AutoscalingRunnerSet',
          metadata: { name: 'a' },
          spec: { githubConfigUrl: 'https://github.com/acme', maxRunners: 1 },
        },
      ],
    });
    const { status, stdout } = await runCli([
      'migrate',
      'arc',
      '-f',
      file(list),
      '-f',
      file(LEGACY),
    ]);
    expect(status).toBe(0);
    expect(applied(stdout).map(({ name }) => name)).toEqual(['a', 'linux']);
  });
});

test('--json: sets, notes and plan for a program', async () => {
  const { stdout } = await migrate(LEGACY, '--json');
  expect(JSON.parse(stdout)).toMatchObject({
    sets: [
      {
        from: expect.stringMatching(/RunnerDeployment ci\/linux$/),
        autoscaler: expect.stringMatching(/linux-hra$/),
        set: { name: 'linux' },
        notes: expect.arrayContaining([
          { field: 'spec.template.spec.image', needsDecision: true, text: expect.any(String) },
        ]),
      },
    ],
    skipped: [{ label: expect.stringMatching(/ConfigMap other$/) }],
    plan: expect.arrayContaining([expect.stringMatching(/^1\. /)]),
  });
});

describe('--out', () => {
  test('has the sets; the plan is on standard output', async () => {
    const out = path('sets.yaml');
    const { status, stdout } = await migrate(LEGACY, '--out', out);
    expect(status).toBe(0);
    expect(applied(readFileSync(out, 'utf8')).map(({ name }) => name)).toEqual(['linux']);
    // Nothing listens there: an error of the connection shows that the sets were accepted.
    expect(
      await runCli(['set', 'apply', '-f', out, '--dry-run'], { TEMPORAL_ADDRESS: '127.0.0.1:1' }),
    ).toMatchObject({ status: 4 });
    expect(stdout.split('\n')[0]).toBe(`${out}: 1 set`);
    expect(stdout).toContain(`"holdfast set apply -f ${out} --dry-run"`);
  });

  test('overwrites no file, and writes no invalid set', async () => {
    const out = path('kept.yaml');
    writeFileSync(out, 'mine');
    const { status, stderr } = await migrate(LEGACY, '--out', out);
    expect(status).toBe(2);
    expect(stderr).toMatch(/--out: .*kept\.yaml/);
    expect(readFileSync(out, 'utf8')).toBe('mine');
    expect((await migrate(`${LEGACY}---\n${VALUES}`, '--out', path('none.yaml'))).status).toBe(2);
    expect(existsSync(path('none.yaml'))).toBe(false);
  });
});

describe('errors', () => {
  test.each<[string, string, RegExp[]]>([
    [
      'one invalid file of several',
      `${LEGACY}---\n${VALUES}`,
      [/nothing was written/, /arc-\d+\.yaml, document 4, values: runnerScaleSetName /],
    ],
    [
      'no object of ARC',
      'apiVersion: v1\nkind: Secret\nmetadata: { name: s }\n',
      [/found no objects of ARC/, /document 1, Secret s: no runners come from this kind/],
    ],
    ['an empty file', '', [/found no objects of ARC/]],
    ['a text', 'hello', [/document 1: is no object/]],
    [
      'a kind that is not a string',
      'apiVersion: actions.summerwind.dev/v1alpha1\nkind: { toString: 1 }',
      [/no runners come from this kind/],
    ],
    [
      'deeply nested values',
      `${VALUES}runnerScaleSetName: x\ntemplate: { spec: { __proto__: ${'[{ a: '.repeat(60)}1${'}]'.repeat(60)} } }`,
      [/document 1: is nested more than 100 levels deep/],
    ],
    ['something else', 'a: 1', [/neither an object of Kubernetes nor values/]],
    [
      'an object of another version of kubectl',
      'kind: RunnerDeployment\nmetadata: { name: x }',
      [/its apiVersion is not that of ARC: actions\.summerwind\.dev\/v1alpha1/],
    ],
    [
      'an object that ARC makes',
      'apiVersion: actions.github.com/v1alpha1\nkind: EphemeralRunner\nmetadata: { name: x }',
      [/made by ARC from its AutoscalingRunnerSet/],
    ],
    [
      'an object that another owns',
      'apiVersion: actions.summerwind.dev/v1alpha1\nkind: Runner\nmetadata: { name: x, ownerReferences: [{}] }',
      [/made by ARC from the object that owns it/],
    ],
    [
      'an autoscaler without its target',
      'apiVersion: actions.summerwind.dev/v1alpha1\nkind: HorizontalRunnerAutoscaler\nmetadata: { name: x }\nspec: { scaleTargetRef: { name: gone } }',
      [/"RunnerDeployment\/gone"/],
    ],
    ['no YAML', 'a: [', [/is neither YAML nor JSON/, /document 1: .*line 1/]],
    ['a file that is too large', `a: ${'x'.repeat(300_000)}`, [/KiB long: write at most 256 KiB/]],
  ])('%s', async (_title, text, messages) => {
    const { status, stdout, stderr } = await migrate(text);
    expect({ status, stdout }).toEqual({ status: 2, stdout: '' });
    for (const message of messages) expect(stderr).toMatch(message);
  });

  test('neither file nor cluster', async () => {
    expect(await runCli(['migrate', 'arc'])).toMatchObject({
      status: 2,
      stdout: '',
      stderr: expect.stringMatching(/-f FILE, -f - for standard input, or --cluster/),
    });
  });
});

describe('values are data in the output', () => {
  const hostile = (name: string, value: string): string =>
    stringify({
      apiVersion: 'actions.github.com/v1alpha1',
      kind: 'AutoscalingRunnerSet',
      metadata: {
        name,
        namespace: '$(reboot)',
        annotations: { 'actions.github.com/cleanup-kubernetes-mode-service-account-name': value },
      },
      spec: {
        githubConfigUrl: 'https://github.com/acme',
        maxRunners: 1,
        template: {
          spec: {
            serviceAccountName: value,
            containers: [{ name: 'runner', args: [value, 'a\tb\nc\n'] }],
            __proto__x: 1,
          },
        },
      },
    });

  test('no value causes a line, a control character or a command', async () => {
    const value = 'x\nname: evil\u001b[31m\u202e---\n';
    const { status, stdout } = await migrate(hostile('a', value));
    expect(status).toBe(0);
    // eslint-disable-next-line no-control-regex
    expect(stdout).not.toMatch(/[\u001b\u202e]/);
    expect(applied(stdout)).toMatchObject([
      { name: 'a', template: { args: [value, 'a\tb\nc\n'] } },
    ]);
    expect(stdout).not.toMatch(/kubectl.*reboot/);
  });

  test.each(['\n', 'a\n\n', '\n a', ' ', '- a', '#', '\ud800', '\u{e0041}', '\u00a0'])(
    '%j at the end of a set is unchanged',
    async (value) => {
      const set = (name: string): object => ({
        apiVersion: 'actions.github.com/v1alpha1',
        kind: 'AutoscalingRunnerSet',
        metadata: { name },
        spec: {
          githubConfigUrl: 'https://github.com/acme',
          maxRunners: 1,
          template: { spec: { containers: [{ name: 'runner', args: [value] }] } },
        },
      });
      const { stdout } = await migrate(
        JSON.stringify({ kind: 'List', items: [set('a'), set('b')] }),
      );
      expect(applied(stdout)).toMatchObject(
        ['a', 'b'].map((name) => ({ name, template: { args: [value] } })),
      );
    },
  );

  test('fields with the names of JavaScript object properties are fields', async () => {
    const { status, stdout } = await migrate(
      'apiVersion: actions.github.com/v1alpha1\nkind: AutoscalingRunnerSet\nmetadata: { name: a }\nspec:\n  githubConfigUrl: https://github.com/acme\n  maxRunners: 1\n  toString: 1\n  __proto__: { evil: 1 }\n  template: { spec: { __proto__: { evil: 1 } } }\n',
    );
    expect(status).toBe(0);
    expect(stdout).toMatch(/spec\.toString: not known to this command/);
    expect(({} as { evil?: number }).evil).toBeUndefined();
  });

  test('invalid names of sets are changed, and stay unique', async () => {
    const long = `${'a'.repeat(40)}_1`;
    const { stdout } = await runCli([
      'migrate',
      'arc',
      '-f',
      file(
        [`${long}x`, `${long}y`, 'b', 'b'].map((name) => hostile(name, 'default')).join('---\n'),
      ),
    ]);
    expect(applied(stdout).map(({ name }) => name)).toEqual([
      'a'.repeat(36),
      `${'a'.repeat(34)}-2`,
      'b',
      'b-2',
    ]);
    expect(applied(stdout)[0]?.template.labels).toEqual([`${long}x`]);
  });
});

/** Kinds of the API server's lists, by the prefix of the resource's plural. */
const KINDS = [
  ['autoscalingrunnersets', 'AutoscalingRunnerSetList'],
  ['runners', 'RunnerList'],
] as const;

describe('--cluster', () => {
  const servers: Server[] = [];
  afterAll(() => servers.forEach((server) => server.close()));

  /** An API server that has these lists, one entry per page. */
  async function cluster(
    pages: Record<string, { status?: number; items?: object[]; next?: string }>,
  ): Promise<{ config: string; asked: string[] }> {
    const asked: string[] = [];
    const server = createServer((request, response) => {
      const url = new URL(request.url ?? '', 'http://x');
      asked.push(url.pathname);
      const plural = `${url.pathname.split('/').at(-1)}${url.searchParams.get('continue') ?? ''}`;
      const page = pages[plural];
      response.writeHead(page === undefined ? 404 : (page.status ?? 200), {
        'content-type': 'application/json',
      });
      response.end(
        JSON.stringify({
          kind: KINDS.find(([prefix]) => plural.startsWith(prefix))?.[1] ?? 'Status',
          metadata: { resourceVersion: '1', continue: page?.next },
          items: page?.items,
        }),
      );
    });
    servers.push(server);
    await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
    const config = file(
      stringify({
        apiVersion: 'v1',
        kind: 'Config',
        'current-context': 'c',
        clusters: [
          {
            name: 'c',
            cluster: {
              server: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
              'insecure-skip-tls-verify': true,
            },
          },
        ],
        users: [{ name: 'u', user: {} }],
        contexts: [{ name: 'c', context: { cluster: 'c', user: 'u' } }],
      }),
    );
    return { config, asked };
  }
  const set = (name: string): object => ({
    metadata: { name, namespace: 'arc' },
    spec: { githubConfigUrl: 'https://github.com/acme', maxRunners: 1 },
  });

  test('lists every existing kind, page by page, and reads nothing else', async () => {
    const { config, asked } = await cluster({
      autoscalingrunnersets: { items: [set('a')], next: 'more' },
      autoscalingrunnersetsmore: { items: [set('b')] },
    });
    const { status, stdout, stderr } = await runCli([
      'migrate',
      'arc',
      '--cluster',
      '--kubeconfig',
      config,
    ]);
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    expect(applied(stdout).map(({ name }) => name)).toEqual(['a', 'b']);
    expect(stdout).toContain('# From cluster, AutoscalingRunnerSet arc/a');
    expect(asked).toEqual([
      '/apis/actions.github.com/v1alpha1/autoscalingrunnersets',
      '/apis/actions.github.com/v1alpha1/autoscalingrunnersets',
      ...[
        'runnerdeployments',
        'runnerreplicasets',
        'runnersets',
        'runners',
        'horizontalrunnerautoscalers',
      ].map((plural) => `/apis/actions.summerwind.dev/v1alpha1/${plural}`),
    ]);
  });

  test('in one namespace', async () => {
    const { config, asked } = await cluster({ autoscalingrunnersets: { items: [set('a')] } });
    expect(
      (
        await runCli([
          'migrate',
          'arc',
          '--cluster',
          '--kubeconfig',
          config,
          '--kube-namespace',
          'arc',
        ])
      ).status,
    ).toBe(0);
    expect(asked[0]).toBe('/apis/actions.github.com/v1alpha1/namespaces/arc/autoscalingrunnersets');
  });

  test('a kind that cannot be listed is named, and nothing is written', async () => {
    const { config } = await cluster({
      autoscalingrunnersets: { items: [set('a')] },
      runners: { status: 403 },
    });
    expect(await runCli(['migrate', 'arc', '--cluster', '--kubeconfig', config])).toMatchObject({
      status: 1,
      stdout: '',
      stderr: expect.stringMatching(/runners could not be listed: .*verb "list"/),
    });
  });

  test('a missing kubeconfig', async () => {
    expect(
      await runCli(['migrate', 'arc', '--cluster', '--kubeconfig', path('gone')]),
    ).toMatchObject({
      status: 2,
      stderr: expect.stringMatching(/--cluster: Cannot read the kubeconfig/),
    });
  });
});
