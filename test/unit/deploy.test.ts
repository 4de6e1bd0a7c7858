import { execFileSync, spawnSync } from 'node:child_process';
import {
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from '@jest/globals';
import { Ajv } from 'ajv';
import { parse, parseAllDocuments } from 'yaml';
import { GITEA_RUNNER } from '../../core/domain/runnerKinds/gitea.ts';
import { GITHUB_RUNNER } from '../../core/domain/runnerKinds/gitHub.ts';
import { TEMPORAL_SERVER } from '../../tools/lab/versions.ts';
import { makeSupervisorFolder } from '../../deploy/images/supervisorFolder.ts';
import { parseDuration } from '../../core/domain/duration.ts';
import { SEARCH_ATTRIBUTES } from '../../core/contract/index.ts';
import { loadConfig } from '../../worker/settings/config.ts';
import { settings } from '../../worker/settings/settings.ts';
import { loadWebhookConfig, webhookSettings } from '../../worker/settings/webhookConfig.ts';

const PROJECT = fileURLToPath(new URL('../..', import.meta.url));
const read = (path: string): string => readFileSync(join(PROJECT, path), 'utf8');
const ATTRIBUTES = Object.values(SEARCH_ATTRIBUTES).map(({ name }) => name);

interface Service {
  image: string;
  profiles: string[];
  command?: string[];
  environment?: Record<string, string>;
  depends_on?: Record<string, { condition: string; required?: boolean }>;
  healthcheck?: object;
  ports?: string[];
  restart: string;
  stop_grace_period?: string;
  volumes?: (string | object)[];
}

describe('docker-compose.yml', () => {
  const compose = parse(read('docker-compose.yml')) as { services: Record<string, Service> };
  const services = Object.entries(compose.services);
  const active = (profile: string): [string, Service][] =>
    services.filter(([, { profiles }]) => profiles.includes(profile));

  test('matches the Compose specification', () => {
    // dclint ships the specification's own schema.
    const folder = dirname(createRequire(import.meta.url).resolve('dclint/package.json'));
    const schema = JSON.parse(
      readFileSync(join(folder, 'schemas', 'compose.schema.json'), 'utf8'),
    ) as object;
    const validate = new Ajv({
      strict: false,
      validateFormats: false,
      validateSchema: false,
      allErrors: true,
    }).compile(schema);
    validate(compose);
    expect(validate.errors).toBeNull();
    expect(validate({ ...compose, services: { worker: { imaeg: 'x' } } })).toBe(false);
  });

  test('every image is pinned', () => {
    for (const [name, { image }] of services)
      expect([name, image]).toEqual([
        name,
        expect.stringMatching(/^[a-z/-]+:\d+\.\d+(\.\d+)?(-[a-z0-9]+)?$/),
      ]);
  });

  test.each(['dev', 'full'])(
    'profile %s: services wait only for services with a health check, and each port is used once',
    (profile) => {
      const present = new Set(active(profile).map(([name]) => name));
      const ready: Record<string, object> = {
        service_healthy: { healthcheck: expect.anything() },
        service_completed_successfully: { restart: expect.stringMatching(/^on-failure:/) },
      };
      for (const [name, service] of active(profile)) {
        for (const [other, { condition, required }] of Object.entries(service.depends_on ?? {})) {
          if (required === false && !present.has(other)) continue;
          expect([name, [...present]]).toEqual([name, expect.arrayContaining([other])]);
          expect([other, Object.keys(ready)]).toEqual([other, expect.arrayContaining([condition])]);
          expect({ other, ...compose.services[other] }).toMatchObject({
            other,
            ...ready[condition],
          });
        }
      }
      const ports = active(profile)
        .flatMap(([, service]) => service.ports ?? [])
        .map((port) => port.split(':').slice(0, -1).join(':'));
      expect(new Set(ports).size).toBe(ports.length);
      expect(ports.every((port) => port.startsWith('127.0.0.1:'))).toBe(true);
    },
  );

  test('each profile starts Temporal, its UI and the worker; plain `docker compose up` uses the profile dev', () => {
    expect(active('dev').map(([name]) => name)).toEqual(['temporal', 'worker']);
    expect(active('full').map(([name]) => name)).toEqual([
      'postgres',
      'temporal-schema',
      'temporal-server',
      'temporal-setup',
      'temporal-ui',
      'worker',
    ]);
    expect(read('.env')).toMatch(/^COMPOSE_PROFILES=dev$/m);
  });

  test('each Temporal server has all search attributes and fairness', () => {
    const flags = compose.services['temporal']?.command ?? [];
    expect(flags.filter((flag) => flag.startsWith('--search-attribute='))).toEqual(
      ATTRIBUTES.map((name) => `--search-attribute=${name}=Keyword`),
    );
    expect(flags).toContain('--dynamic-config-value=matching.enableFairness=true');
    expect(parse(read('deploy/compose/dynamic-config.yaml'))).toMatchObject({
      'matching.enableFairness': [{ value: true }],
    });
    expect(
      /^for name in (.*); do$/m.exec(read('deploy/compose/setup.sh'))?.[1]?.split(' '),
    ).toEqual(ATTRIBUTES);
  });

  test("the worker's settings exist, and its stop grace period is long enough", () => {
    const worker = compose.services['worker'];
    const names = Object.keys(worker?.environment ?? {});
    for (const name of names)
      expect(
        name in settings.shape || ['TEMPORAL_ADDRESS', 'TEMPORAL_NAMESPACE'].includes(name)
          ? name
          : `unknown: ${name}`,
      ).toBe(name);
    const { shutdownForceMs } = loadConfig({ HOLDFAST_GITHUB_TOKEN: 'x' });
    expect(parseDuration(worker?.stop_grace_period ?? '')).toBeGreaterThan(shutdownForceMs);
  });
});

describe('deploy/webhook.yaml', () => {
  interface Container {
    command: string[];
    env: { name: string }[];
    ports: { name: string; containerPort: number }[];
    livenessProbe: object;
    readinessProbe: object;
    securityContext: object;
  }
  interface Manifest {
    kind: string;
    metadata: { namespace: string };
    spec: {
      replicas: number;
      selector: Readonly<Record<string, unknown>>;
      template: {
        metadata: { labels: object };
        spec: {
          automountServiceAccountToken: boolean;
          serviceAccountName?: string;
          securityContext: object;
          containers: [Container];
          volumes: object[];
        };
      };
      ports: { targetPort: string }[];
      podSelector: object;
      policyTypes: string[];
      ingress: { ports: { port: string | number }[]; from?: object[] }[];
      egress: { ports: { port: number }[] }[];
    };
  }
  const manifests = parseAllDocuments(read('deploy/webhook.yaml')).map(
    (document) => document.toJS() as Manifest,
  );
  const [deployment, budget, service, policy] = manifests.map(({ spec }) => spec) as [
    Manifest['spec'],
    Manifest['spec'],
    Manifest['spec'],
    Manifest['spec'],
  ];
  const { spec: pod, metadata } = deployment.template;
  const [container] = pod.containers;

  test('has two replicas, a disruption budget, a Service and a NetworkPolicy, in one namespace and for the same pods', () => {
    expect(manifests.map(({ kind }) => kind)).toEqual([
      'Deployment',
      'PodDisruptionBudget',
      'Service',
      'NetworkPolicy',
    ]);
    expect(new Set(manifests.map(({ metadata: { namespace } }) => namespace))).toEqual(
      new Set(['holdfast']),
    );
    expect(deployment.replicas).toBe(2);
    for (const selector of [
      deployment.selector,
      budget.selector,
      { matchLabels: service.selector },
      policy.podSelector,
    ])
      expect(selector).toEqual({ matchLabels: metadata.labels });
  });

  test('has no credential for the cluster or a CI server', () => {
    expect([pod.automountServiceAccountToken, pod.serviceAccountName]).toEqual([false, undefined]);
    expect(pod.volumes).toEqual([{ name: 'webhook', secret: { secretName: 'holdfast-webhook' } }]);
    expect(container.command).toEqual(['holdfast', 'webhook']);
    const allowed = [
      ...Object.keys(webhookSettings.shape),
      'TEMPORAL_ADDRESS',
      'TEMPORAL_NAMESPACE',
    ];
    expect(container.env.map(({ name }) => name).filter((name) => !allowed.includes(name))).toEqual(
      [],
    );
  });

  test('passes Pod Security "restricted", with a read-only root file system', () => {
    expect(pod.securityContext).toEqual({
      runAsNonRoot: true,
      runAsUser: 1000,
      runAsGroup: 1000,
      seccompProfile: { type: 'RuntimeDefault' },
    });
    expect(container.securityContext).toEqual({
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    });
  });

  test('its ports are the defaults; probes check the health, and the Service exposes only the webhook port', () => {
    const { http, webhook } = loadWebhookConfig({ HOLDFAST_WEBHOOK_SECRET: 's' });
    expect(container.ports).toEqual([
      { name: 'health', containerPort: http.port },
      { name: 'deliveries', containerPort: webhook.port },
    ]);
    expect([container.livenessProbe, container.readinessProbe]).toEqual(
      ['/livez', '/readyz'].map((path) => ({ httpGet: { path, port: 'health' } })),
    );
    expect(service.ports).toMatchObject([{ targetPort: 'deliveries' }]);
  });

  test('permits deliveries from everywhere, no runner at its metrics, and egress only to DNS and Temporal', () => {
    const noRunner = {
      namespaceSelector: {
        matchExpressions: [
          { key: 'kubernetes.io/metadata.name', operator: 'NotIn', values: ['holdfast-runners'] },
        ],
      },
    };
    expect(policy.policyTypes).toEqual(['Ingress', 'Egress']);
    expect(policy.ingress).toEqual([
      { ports: [{ port: 'deliveries' }] },
      { ports: [{ port: 'health' }], from: [noRunner] },
    ]);
    expect(policy.egress.flatMap(({ ports }) => ports.map(({ port }) => port))).toEqual([
      53, 53, 7233,
    ]);
  });
});

describe('the images', () => {
  const copied = (dockerfile: string): string[] =>
    [...dockerfile.matchAll(/^COPY (?!--from)(?:--\S+ )*(.+) \S+$/gm)].flatMap(([, sources]) =>
      (sources ?? '').split(' '),
    );

  test.each([
    ['deploy/images/worker.Dockerfile'],
    ['deploy/images/runner.Dockerfile'],
    ['deploy/images/supervisor.Dockerfile'],
  ])('%s: its base images are pinned or stages, and the files that it copies exist', (path) => {
    const dockerfile = read(path);
    const stages = [...dockerfile.matchAll(/^FROM \S+ AS (\S+)$/gm)].map(([, stage]) => stage);
    const bases = [...dockerfile.matchAll(/^FROM (\S+)/gm)].map(([, base = '']) => base);
    const fetched = bases.filter((base) => !stages.includes(base));
    expect(fetched.length).toBeGreaterThan(0);
    for (const base of fetched) expect(base).toMatch(/:\d+\.\d+[^@]*@sha256:[0-9a-f]{64}$/);
    for (const [, stage] of dockerfile.matchAll(/^COPY --from=(\S+)/gm))
      expect(stages).toContain(stage);
    const sources = copied(dockerfile);
    expect(sources.length).toBeGreaterThan(0);
    for (const source of sources)
      expect([source, existsSync(join(PROJECT, source))]).toEqual([source, true]);
  });

  test("the images create the supervisor's folder in the same way, with an existing script, and run with a numeric user id", () => {
    const making = (path: string): string | undefined =>
      /^FROM \S+ AS packages\n[^]*?(?=^FROM (?!packages AS supervisor$))/m
        .exec(read(path))?.[0]
        .trim();
    const script = making('deploy/images/runner.Dockerfile');
    for (const other of ['worker', 'supervisor'])
      expect(making(`deploy/images/${other}.Dockerfile`)).toBe(script);
    for (const image of ['runner', 'worker', 'supervisor'])
      expect(read(`deploy/images/${image}.Dockerfile`)).toMatch(/^USER [1-9]\d*$/m);
    const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> };
    expect(script).toMatch(/npm run build:supervisor-folder -- \/opt\/holdfast$/);
    expect(scripts['build:supervisor-folder']).toBe('node deploy/images/buildSupervisorFolder.ts');
  });

  test('the runner image has the base of the default image, and both run the same script', () => {
    expect(read('deploy/images/runner.Dockerfile')).toContain(`FROM ${GITHUB_RUNNER.image.name}@`);
    expect(`${GITHUB_RUNNER.image.command[2]}\n`).toBe(
      read('deploy/images/runner-entrypoint.sh').replace(/^#.*\n(#.*\n)*/, ''),
    );
  });

  test("the script of Gitea's image is the default script of runners", () => {
    expect(`${GITEA_RUNNER.image?.command[2]}\n`).toBe(
      read('deploy/images/gitea-runner-entrypoint.sh').replace(/^#.*\n(#.*\n)*/, ''),
    );
  });

  /**
   * Runs a container's script with a fake runner that records its calls and registers like GitHub's, by creating files.
   * @param existing - files in the runner's own folder; `shared`: the folder that the two containers share
   */
  function enter(
    env: Record<string, string>,
    [shell = '', ...args] = GITHUB_RUNNER.image.command,
    { existing = [], shared = '' }: { existing?: string[]; shared?: string } = {},
  ): string[] {
    const home = mkdtempSync(join(tmpdir(), 'holdfast-runner-'));
    const tell = (name: string): string =>
      `#!/bin/sh\necho "${name} $* token=\${ACTIONS_RUNNER_INPUT_TOKEN:-} jit=\${ACTIONS_RUNNER_INPUT_JITCONFIG:-}"\n`;
    writeFileSync(
      join(home, 'config.sh'),
      `${tell('config.sh')}[ -e .refuse ] && exit 3\nfor name in runner credentials credentials_rsaparams; do echo "$name of $3" >.$name; done\n`,
      { mode: 0o755 },
    );
    writeFileSync(
      join(home, 'run.sh'),
      `${tell('run.sh')}cat .runner* .credentials* 2>/dev/null || :\n`,
      { mode: 0o755 },
    );
    for (const name of existing) writeFileSync(join(home, name), 'an earlier one\n');
    const dir = shared === '' ? {} : { HOLDFAST_REGISTRATION_DIR: shared };
    try {
      return execFileSync(shell, args, {
        env: { PATH: process.env['PATH'], RUNNER_HOME: home, ...dir, ...env },
        encoding: 'utf8',
        stdio: ['ignore', 'pipe', 'pipe'],
      })
        .trim()
        .split('\n');
    } finally {
      rmSync(home, { recursive: true });
    }
  }

  test('with a JIT config it runs without a registration', () => {
    expect(enter({ ACTIONS_RUNNER_INPUT_JITCONFIG: 'abc' })).toEqual(['run.sh  token= jit=abc']);
  });

  const testWithTini = existsSync('/usr/bin/tini-static') ? test : test.skip;
  testWithTini(
    "the runner image's entry point is the supervisor, from a folder with all its files",
    async () => {
      const folder = mkdtempSync(join(tmpdir(), 'holdfast-folder-'));
      try {
        await makeSupervisorFolder(folder);
        const entrypoint = JSON.parse(
          /^ENTRYPOINT (.*)$/m.exec(read('deploy/images/runner.Dockerfile'))?.[1] ?? '[]',
        ) as string[];
        const script = join(PROJECT, 'deploy/images/runner-entrypoint.sh');
        const command = entrypoint.flatMap((word) =>
          word === '/usr/local/bin/holdfast-runner'
            ? ['/bin/sh', script]
            : [word.replace('/opt/holdfast', folder)],
        );
        const [, mode] =
          /^ENV HOLDFAST_RUNNER_KIND=(.*)$/m.exec(read('deploy/images/runner.Dockerfile')) ?? [];
        expect(
          enter(
            { ACTIONS_RUNNER_INPUT_JITCONFIG: 'abc', HOLDFAST_RUNNER_KIND: mode ?? '' },
            command,
          ),
        ).toEqual(['run.sh  token= jit=abc']);
        expect(() => enter({ HOLDFAST_RUNNER_KIND: 'nonsense' }, command)).toThrow(
          /HOLDFAST_RUNNER_KIND/,
        ); // it is the supervisor that ran
        if (spawnSync('strip', ['--version']).error !== undefined) return; // the images have it
        const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).map((name) =>
          statSync(join(folder, name)),
        );
        expect(files.reduce((sum, file) => sum + (file.isFile() ? file.size : 0), 0)).toBeLessThan(
          120e6,
        );
      } finally {
        rmSync(folder, { recursive: true });
      }
    },
  );

  const TOKEN = {
    RUNNER_TOKEN: 'AAA',
    RUNNER_URL: 'https://github.com/acme',
    RUNNER_NAME: 'acme-1',
    RUNNER_LABELS: 'linux,x64',
  };

  function withSharedFolder<T>(body: (folder: string) => T): T {
    const folder = mkdtempSync(join(tmpdir(), 'holdfast-handed-'));
    try {
      return body(folder);
    } finally {
      rmSync(folder, { recursive: true });
    }
  }

  test.each([
    [
      'static, in a group',
      { RUNNER_EPHEMERAL: 'false', RUNNER_GROUP: 'big ones' },
      ' --runnergroup big ones',
    ],
    [
      'static, of a fixed version',
      { RUNNER_EPHEMERAL: 'false', RUNNER_DISABLE_UPDATE: 'true' },
      ' --disableupdate',
    ],
    ['ephemeral', { RUNNER_EPHEMERAL: 'true' }, ' --ephemeral'],
  ])(
    'a separate container registers, and the runner runs with its files and without a token: %s',
    (_what, more, options) => {
      withSharedFolder((shared) => {
        const registered = enter({ ...TOKEN, ...more }, GITHUB_RUNNER.registration.token.command, {
          shared,
        });
        expect(registered).toEqual([
          `config.sh --unattended --url https://github.com/acme --name acme-1 --labels linux,x64${options} token=AAA jit=`,
        ]);
        expect(readdirSync(shared).toSorted()).toEqual([
          '.credentials',
          '.credentials_rsaparams',
          '.runner',
        ]);
        const existing = ['.runner', '.runner_migrated', '.credentials_migrated'];
        const [first, ...files] = enter({}, GITHUB_RUNNER.image.command, { shared, existing });
        const of = 'of https://github.com/acme';
        expect({ first, files: files.toSorted() }).toEqual({
          first: 'run.sh  token= jit=',
          files: [`credentials ${of}`, `credentials_rsaparams ${of}`, `runner ${of}`],
        });
      });
    },
  );

  test.each<[string, Record<string, string>, string[], number]>([
    ['of config.sh', TOKEN, ['.refuse'], 3],
    ['of a missing variable', { RUNNER_TOKEN: 'AAA' }, [], 2],
  ])(
    'a failed registration ends its container with the status %s',
    (_what, env, existing, status) => {
      withSharedFolder((shared) => {
        let failure: unknown;
        try {
          enter(env, GITHUB_RUNNER.registration.token.command, { shared, existing });
        } catch (error) {
          failure = error;
        }
        expect(failure).toMatchObject({ status });
        expect(readdirSync(shared)).toEqual([]);
      });
    },
  );
});

test("Docker Compose and the documentation name the version of Temporal's server that the lab runs as a cluster", () => {
  const compose = readFileSync(join(PROJECT, 'docker-compose.yml'), 'utf8');
  const named = [...compose.matchAll(/temporalio\/(?:server|admin-tools):(\S+)/g)];
  expect(named.length).toBeGreaterThan(0);
  expect(new Set(named.map(([, version]) => version))).toEqual(new Set([TEMPORAL_SERVER]));
  expect(readFileSync(join(PROJECT, 'docs/operations.md'), 'utf8')).toContain(TEMPORAL_SERVER);
});
