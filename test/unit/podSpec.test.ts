import { describe, expect, test } from '@jest/globals';
import { GITEA_RUNNER } from '../../core/domain/runnerKinds/gitea.ts';
import { GITHUB_RUNNER } from '../../core/domain/runnerKinds/gitHub.ts';
import {
  podErrors,
  podSpec,
  type PodDefaults,
} from '../../activities/compute/kubernetes/podSpec.ts';
import { toPodView } from '../../activities/compute/kubernetes/podView.ts';
import {
  parseRegistrationAnnotations,
  registrationAnnotations,
  parseRegistrationSecret,
  registrationSecret,
} from '../../activities/compute/kubernetes/registrationSecret.ts';
import type { PodRequest } from '../../core/domain/pod.ts';

const identity = { workflowId: 'runner-a', firstRunId: 'r-1', attempt: 2 };
const request: PodRequest = {
  identity,
  image: 'img',
  labels: { 'holdfast.dev/set': 'blue', 'holdfast.dev/scope': 'octo/repo' },
  terminationGracePeriodSeconds: 45,
};
const build = (more: Partial<PodRequest> = {}, defaults: PodDefaults = {}, keys: string[] = []) =>
  podSpec(
    { ...request, ...more },
    defaults,
    'main',
    keys.length > 0 ? { secretName: 's', keys } : undefined,
  );
const UNPRIVILEGED = { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } };
const secretVariable = (name: string) => ({
  name,
  valueFrom: { secretKeyRef: { name: 's', key: name } },
});
const runnerOf = (...of: Parameters<typeof build>) => build(...of).spec!.containers[0]!;

const supervision = {
  runnerKind: 'github',
  ephemeral: false,
  onTerm: 'stop',
  drainTimeoutMs: 0,
  signalTimeoutMs: 1,
  cleanupTimeoutMs: 1,
  signalTarget: 'group',
  startupTimeoutMs: 1,
} as const;

test.each<[runnerKind: 'github' | 'gitea' | undefined, registers: boolean]>([
  ['github', true],
  ['gitea', false],
  [undefined, true],
])('a static runner of %s has a container that registers it: %s', (runnerKind, registers) => {
  const { identity: _identity, ...asked } = request;
  const initContainers: string[] = [];
  podErrors(
    {
      ...asked,
      ...(runnerKind && { supervision: { ...supervision, mode: 'none', runnerKind } }),
    },
    { image: 'own' },
    'main',
    ({ spec }) => {
      initContainers.push(...(spec?.initContainers ?? []).map(({ name }) => name));
      return [];
    },
    { scope: { kind: 'organization', name: 'acme' }, credential: 'default', mode: 'token' },
  );
  expect(initContainers.includes('holdfast-register')).toBe(registers);
});

describe('the image and command of a runner on a worker for several kinds', () => {
  const { image: giteas } = GITEA_RUNNER;
  const ofGitHub = {
    image: GITHUB_RUNNER.image.name,
    command: ['github'],
    args: ['all'],
    user: 1001,
  };
  const of = (
    runnerKind: 'github' | 'gitea' | 'command',
    defaults: PodDefaults,
    more: { image?: string; command?: string[] } = {},
  ) => {
    const { image: _image, ...rest } = request;
    const pod = { ...rest, supervision: { ...supervision, mode: 'none', runnerKind }, ...more };
    const { image, command, args } = podSpec(pod as PodRequest, defaults, 'main', undefined).spec!
      .containers[0]!;
    return { image, command, args };
  };

  test('the default image of one kind is not used for another', () => {
    expect(of('gitea', ofGitHub)).toEqual({ image: giteas?.name, command: giteas?.command });
    expect(of('github', { image: giteas?.name ?? '', command: ['gitea'] })).toEqual({
      image: GITHUB_RUNNER.image.name,
      command: GITHUB_RUNNER.image.command,
    });
    const { image, command, args } = ofGitHub;
    expect(of('github', ofGitHub)).toEqual({ image, command, args });
    expect(of('command', ofGitHub)).toEqual({ image, command, args });
  });

  test('a custom image gets the command that reads the registration, unless the input has a command', () => {
    expect(of('gitea', ofGitHub, { image: 'own' }).command).toEqual(giteas?.command);
    expect(of('gitea', { image: 'own' }).command).toEqual(giteas?.command);
    expect(of('gitea', ofGitHub, { image: 'own', command: ['mine'] }).command).toEqual(['mine']);
    expect(of('github', ofGitHub, { image: 'own' }).command).toBeUndefined();
  });
});

describe('podSpec', () => {
  test('without a template', () => {
    expect(build({}, {}, ['ACTIONS_RUNNER_INPUT_JITCONFIG'])).toEqual({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: {
        name: expect.stringMatching(/^runner-a-[0-9a-f]{10}$/),
        labels: {
          'holdfast.dev/set': 'blue',
          'holdfast.dev/scope': 'octo-repo',
          'app.kubernetes.io/managed-by': 'holdfast',
          'holdfast.dev/installation': 'main',
          'holdfast.dev/workflow': 'runner-a',
        },
        annotations: {
          'holdfast.dev/workflow-id': 'runner-a',
          'holdfast.dev/first-run-id': 'r-1',
          'holdfast.dev/attempt': '2',
        },
      },
      spec: {
        automountServiceAccountToken: false,
        enableServiceLinks: false,
        securityContext: { seccompProfile: { type: 'RuntimeDefault' } },
        restartPolicy: 'Never',
        terminationGracePeriodSeconds: 45,
        containers: [
          {
            name: 'runner',
            image: 'img',
            securityContext: UNPRIVILEGED,
            env: [secretVariable('ACTIONS_RUNNER_INPUT_JITCONFIG')],
          },
        ],
      },
    });
  });

  test('is annotated if its set waits for the busy event, and its view contains that', () => {
    expect(toPodView(build({ notifyBusy: true }), '').notifyBusy).toBe(true);
    expect(toPodView(build(), '').notifyBusy).toBeUndefined();
  });

  test('is annotated with the facts that the sweep needs if the workflow is gone', () => {
    const at = { scope: { kind: 'repository', name: 'octo/repo' }, credential: 'app' } as const;
    const noted = {
      'holdfast.dev/runner-name': 'r-1',
      'holdfast.dev/runner-id': '7',
      'holdfast.dev/scope': 'repository/octo/repo',
      'holdfast.dev/credential': 'app',
    };
    const annotations = registrationAnnotations({
      runnerName: 'r-1',
      runnerId: '7',
      at,
      env: { TOKEN: 'secret' },
    });
    expect(annotations).toEqual(noted);
    expect(parseRegistrationAnnotations(annotations)).toEqual({
      runnerName: 'r-1',
      runnerId: '7',
      at,
    });
    expect(
      podSpec({ ...request, jobTimeoutCapMs: 5_400_000 }, {}, 'main', {
        secretName: 's',
        keys: [],
        annotations,
      }).metadata?.annotations,
    ).toMatchObject({ ...noted, 'holdfast.dev/job-timeout-cap': '1h30m0s' });
  });

  test('env: defaults, template, request, Secret; each name once, the last wins', () => {
    const container = {
      name: 'runner',
      env: [
        { name: 'A', value: 'template' },
        { name: 'B', value: 'template' },
        { name: 'C', value: 'template' },
      ],
    };
    const defaults = {
      env: { A: 'default', D: 'default', ACTIONS_RUNNER_INPUT_JITCONFIG: 'default' },
    };
    expect(
      runnerOf(
        { template: { spec: { containers: [container] } }, env: { B: 'request' } },
        defaults,
        ['ACTIONS_RUNNER_INPUT_JITCONFIG', 'C'],
      ).env,
    ).toEqual([
      { name: 'A', value: 'template' },
      { name: 'D', value: 'default' },
      secretVariable('ACTIONS_RUNNER_INPUT_JITCONFIG'),
      { name: 'B', value: 'request' },
      secretVariable('C'),
    ]);
  });

  test.each([
    ['the request', { image: 'request' }, 'request'],
    ['otherwise the template', { image: undefined }, 'template'],
  ])('image: %s', (_, more, expected) => {
    const { image: _image, ...bare } = request;
    const pod = podSpec(
      {
        ...bare,
        ...(more.image ? { image: more.image } : {}),
        template: { spec: { containers: [{ name: 'runner', image: 'template' }] } },
      },
      { image: 'default' },
      'main',
      undefined,
    );
    expect(pod.spec!.containers[0]!.image).toBe(expected);
  });

  test("image: otherwise the worker's default, otherwise an error", () => {
    const { image: _image, ...bare } = request;
    expect(podSpec(bare, { image: 'default' }, 'main', undefined).spec!.containers[0]!.image).toBe(
      'default',
    );
    expect(() => podSpec(bare, {}, 'main', undefined)).toThrow(/No image for the runner container/);
  });

  test("the supervisor's settings escape $$, which Kubernetes would replace with $", () => {
    const supervision = {
      runnerKind: 'command',
      ephemeral: true,
      onTerm: 'stop',
      drainTimeoutMs: 0,
      signalTimeoutMs: 1,
      cleanupTimeoutMs: 1,
      signalTarget: 'group',
      startupTimeoutMs: 1,
      cleanupCommand: ['sh', '-c', 'echo $$ $(HOME)'],
    } as const;
    const { env } = runnerOf({ command: ['work'], supervision }, { supervisor: { image: 'sup' } });
    expect(env).toContainEqual({
      name: 'HOLDFAST_CLEANUP_COMMAND',
      value: '["sh","-c","echo $$$$ $$(HOME)"]',
    });
  });

  test('the supervisor writes its record to the terminationMessagePath of the template', () => {
    const supervision = {
      runnerKind: 'command',
      ephemeral: true,
      onTerm: 'stop',
      drainTimeoutMs: 0,
      signalTimeoutMs: 1,
      cleanupTimeoutMs: 1,
      signalTarget: 'group',
      startupTimeoutMs: 1,
    } as const;
    const template = {
      spec: { containers: [{ name: 'runner', terminationMessagePath: '/tmp/end' }] },
    };
    expect(
      runnerOf({ command: ['work'], supervision, template }, { supervisor: { image: 'sup' } }).env,
    ).toContainEqual({ name: 'HOLDFAST_TERMINATION_LOG', value: '/tmp/end' });
    expect(
      runnerOf({ command: ['work'], supervision }, { supervisor: { image: 'sup' } }).env,
    ).not.toContainEqual(expect.objectContaining({ name: 'HOLDFAST_TERMINATION_LOG' }));
  });

  describe('a registration token', () => {
    const TOKEN = ['RUNNER_TOKEN', 'RUNNER_URL'];
    const dir = { name: 'HOLDFAST_REGISTRATION_DIR', value: '/holdfast-registration' };
    const mount = { name: 'holdfast-registration', mountPath: '/holdfast-registration' };

    test("goes to a container of the worker's settings, the last one before the runner; the runner gets the files", () => {
      const ofWorker = {
        spec: {
          securityContext: { runAsUser: 1001 },
          volumes: [
            { name: 'ca', configMap: { name: 'ca' } },
            { name: 'tmp', emptyDir: {} },
            { name: 'cache', hostPath: { path: '/cache' } },
          ],
          containers: [
            {
              name: 'runner',
              env: [{ name: 'https_proxy', value: 'p' }],
              volumeMounts: [
                { name: 'ca', mountPath: '/etc/ssl' },
                { name: 'tmp', mountPath: '/tmp' },
                { name: 'cache', mountPath: '/cache' },
              ],
            },
          ],
        },
      };
      const { spec } = build(
        {
          supervision,
          command: ['run'],
          template: {
            spec: {
              initContainers: [{ name: 'prepare', image: 'p' }],
              containers: [{ name: 'runner', resources: { limits: { cpu: '1' } } }],
            },
          },
        },
        { image: 'own', env: { LANG: 'C' }, template: ofWorker, supervisor: { image: 'sup' } },
        TOKEN,
      );
      expect(spec!.initContainers!.map(({ name }) => name)).toEqual([
        'holdfast-supervisor',
        'prepare',
        'holdfast-register',
      ]);
      expect(spec!.initContainers![2]).toEqual({
        name: 'holdfast-register',
        image: 'own',
        command: GITHUB_RUNNER.registration.token.command,
        resources: { limits: { cpu: '1' } },
        securityContext: { ...UNPRIVILEGED, runAsUser: 1001 },
        env: [
          { name: 'LANG', value: 'C' },
          { name: 'https_proxy', value: 'p' },
          secretVariable('RUNNER_TOKEN'),
          secretVariable('RUNNER_URL'),
          dir,
        ],
        // Not the folder of the node, to which an earlier job may have written.
        volumeMounts: [
          { name: 'holdfast-register-0', mountPath: '/etc/ssl' },
          { name: 'holdfast-register-1', mountPath: '/tmp' },
          mount,
        ],
      });
      const [container] = spec!.containers;
      expect(JSON.stringify(container)).not.toContain('RUNNER_TOKEN');
      expect(container!.env).toEqual(expect.arrayContaining([secretVariable('RUNNER_URL'), dir]));
      expect(container!.volumeMounts).toEqual(
        expect.arrayContaining([
          { ...mount, readOnly: true },
          { name: 'tmp', mountPath: '/tmp' },
        ]),
      );
      expect(spec!.volumes).toEqual(
        expect.arrayContaining([
          { name: 'holdfast-registration', emptyDir: { medium: 'Memory', sizeLimit: '1Mi' } },
          { name: 'holdfast-register-0', configMap: { name: 'ca' } },
          { name: 'holdfast-register-1', emptyDir: {} },
        ]),
      );
    });

    test('is not accessible to the containers that a runner adds', () => {
      const asked = {
        image: 'mine',
        command: ['mine'],
        args: ['mine'],
        env: { LD_PRELOAD: '/evil.so' },
        proxy: { https: { url: 'http://evil:1' } },
        ca: { configMapKeyRef: { name: 'evil', key: 'ca.crt' } },
        volumeClaims: [{ name: 'home', mountPath: '/home/runner', storage: '1Gi' }],
        template: {
          spec: {
            securityContext: { runAsUser: 7 },
            volumes: [
              { name: 'tmp', emptyDir: {} },
              { name: 'ca', configMap: { name: 'evil' } },
            ],
            initContainers: [
              { name: 'holdfast-register', image: 'evil', command: ['evil'] },
              { name: 'side', image: 'evil', volumeMounts: [{ name: 'tmp', mountPath: '/t' }] },
            ],
            containers: [
              {
                name: 'runner',
                image: 'evil',
                workingDir: '/evil',
                envFrom: [{ configMapRef: { name: 'evil' } }],
                env: [{ name: 'RUNNER_HOME', value: '/t' }],
                volumeMounts: [{ name: 'tmp', mountPath: '/home/runner' }],
                securityContext: { privileged: true },
                resources: { claims: [{ name: 'evil' }] },
              },
            ],
          },
        },
      };
      const ofWorker = {
        image: 'own',
        user: 1001,
        template: {
          spec: {
            volumes: [{ name: 'ca', configMap: { name: 'ca' } }],
            initContainers: [
              {
                name: 'holdfast-register',
                command: ['register'],
                volumeMounts: [{ name: 'ca', mountPath: '/ca' }],
              },
            ],
          },
        },
      };
      const { spec } = build(asked, ofWorker, TOKEN);
      expect(spec!.initContainers!.at(-1)).toEqual({
        name: 'holdfast-register',
        image: 'own',
        command: ['register'],
        resources: {},
        securityContext: { ...UNPRIVILEGED, runAsNonRoot: true, runAsUser: 1001 },
        env: [secretVariable('RUNNER_TOKEN'), secretVariable('RUNNER_URL'), dir],
        volumeMounts: [{ name: 'holdfast-register-0', mountPath: '/ca' }, mount],
      });
      expect(spec!.volumes).toContainEqual({
        name: 'holdfast-register-0',
        configMap: { name: 'ca' },
      });
    });

    test.each(['shareProcessNamespace', 'hostPID'])('is not given to a pod with %s', (field) => {
      const template = { spec: { [field]: true } };
      const code = (keys: string[]): unknown => {
        try {
          build({ template }, {}, keys);
          return undefined;
        } catch (error) {
          return error;
        }
      };
      expect(code(TOKEN)).toMatchObject({
        kind: 'invalid',
        message: expect.stringContaining(`pod.spec.${field}`),
      });
      expect(code(['ACTIONS_RUNNER_INPUT_JITCONFIG'])).toBeUndefined();
    });

    test('needs no container if the runner has a JIT config', () => {
      const template = {
        spec: { initContainers: [{ name: 'holdfast-register', command: ['register'] }] },
      };
      const keys = ['ACTIONS_RUNNER_INPUT_JITCONFIG'];
      expect(build({}, { template }, keys).spec!.initContainers).toBeUndefined();
    });
  });

  describe('permissions', () => {
    const rights = (ofRunner: object | undefined, ofPod?: object, user?: number) => {
      const template = {
        spec: {
          ...(ofPod && { securityContext: ofPod }),
          containers: [{ name: 'runner', ...(ofRunner && { securityContext: ofRunner }) }],
        },
      };
      const { image: _image, ...imageless } = request;
      const { spec } = podSpec(
        { ...imageless, template },
        { image: 'default', ...(user !== undefined && { user }) },
        'main',
        undefined,
      );
      return { pod: spec!.securityContext, runner: spec!.containers[0]!.securityContext };
    };
    const pod = { seccompProfile: { type: 'RuntimeDefault' } };
    const asRunner = { runAsNonRoot: true, runAsUser: 1001 };

    test.each<[string, Parameters<typeof rights>, object]>([
      ['none by default', [undefined], { pod, runner: UNPRIVILEGED }],
      [
        "the default image's user",
        [undefined, undefined, 1001],
        { pod, runner: { ...UNPRIVILEGED, ...asRunner } },
      ],
      [
        'the user that the template gives the runner',
        [{ runAsUser: 0 }, undefined, 1001],
        { pod, runner: { ...UNPRIVILEGED, runAsUser: 0 } },
      ],
      [
        'the user that the template gives the pod',
        [undefined, { runAsUser: 5 }, 1001],
        { pod: { ...pod, runAsUser: 5 }, runner: UNPRIVILEGED },
      ],
      [
        "the template's profile",
        [undefined, { seccompProfile: { type: 'Localhost', localhostProfile: 'p' } }],
        {
          pod: { seccompProfile: { type: 'Localhost', localhostProfile: 'p' } },
          runner: UNPRIVILEGED,
        },
      ],
      [
        'sudo',
        [{ allowPrivilegeEscalation: true, capabilities: { drop: [] } }],
        { pod, runner: { allowPrivilegeEscalation: true, capabilities: { drop: [] } } },
      ],
      [
        'a capability',
        [{ capabilities: { add: ['NET_ADMIN'] } }],
        {
          pod,
          runner: {
            allowPrivilegeEscalation: false,
            capabilities: { drop: ['ALL'], add: ['NET_ADMIN'] },
          },
        },
      ],
      [
        'a capability that the API server accepts only with privilege escalation',
        [{ capabilities: { add: ['SYS_ADMIN'] } }],
        { pod, runner: { capabilities: { drop: ['ALL'], add: ['SYS_ADMIN'] } } },
      ],
      [
        'all of them',
        [{ privileged: true }, undefined, 1001],
        { pod, runner: { privileged: true } },
      ],
    ])('%s', (_what, of, expected) => {
      expect(rights(...of)).toEqual(expected);
    });

    test("the default image's user is not used for another image, and the container that copies the supervisor is unprivileged", () => {
      const supervision = {
        runnerKind: 'command',
        ephemeral: true,
        onTerm: 'stop',
        drainTimeoutMs: 0,
        signalTimeoutMs: 1,
        cleanupTimeoutMs: 1,
        signalTarget: 'group',
        startupTimeoutMs: 1,
      } as const;
      const { spec } = build(
        { command: ['work'], supervision },
        { user: 1001, supervisor: { image: 'sup' } },
      );
      expect(spec!.containers[0]!.securityContext).toEqual(UNPRIVILEGED);
      expect(spec!.initContainers![0]!.securityContext).toEqual({
        ...UNPRIVILEGED,
        seccompProfile: { type: 'RuntimeDefault' },
        readOnlyRootFilesystem: true,
        runAsNonRoot: true,
        runAsUser: 1000,
      });
    });
  });

  test('command and args of the input replace those of the templates', () => {
    const container = { name: 'runner', command: ['t'], args: ['t'] };
    expect(
      runnerOf(
        { command: ['r'], template: { spec: { containers: [container] } } },
        { command: ['d'], args: ['d'] },
      ),
    ).toMatchObject({ command: ['r'], args: ['t'] });
    expect(runnerOf({})).not.toHaveProperty('command');
  });

  test('the default command belongs to the default image: another image has its own entry point', () => {
    const { image: _, ...imageless } = request;
    const defaults = { image: 'default', command: ['d'], args: ['e'] };
    const byDefault = podSpec(imageless, defaults, 'main', undefined).spec!.containers[0]!;
    expect(byDefault).toMatchObject({ image: 'default', command: ['d'], args: ['e'] });
    expect(runnerOf({}, defaults)).not.toHaveProperty('command');
    expect(
      runnerOf(
        { template: { spec: { containers: [{ name: 'runner', image: 'mine' }] } } },
        defaults,
      ),
    ).not.toHaveProperty('args');
  });

  test("the runner's container is first, and other containers and fields of the template are kept", () => {
    const template = {
      metadata: { labels: { team: 'x' }, annotations: { note: 'y' } },
      spec: {
        nodeSelector: { disk: 'ssd' },
        automountServiceAccountToken: true,
        containers: [
          { name: 'proxy', image: 'p' },
          { name: 'runner', resources: { limits: { memory: '1Gi' } } },
        ],
        initContainers: [{ name: 'dind', image: 'docker:dind', restartPolicy: 'Always' }],
      },
    };
    const pod = build({ template });
    expect(pod.metadata).toMatchObject({
      labels: { team: 'x', 'holdfast.dev/installation': 'main' },
      annotations: { note: 'y', 'holdfast.dev/attempt': '2' },
    });
    expect(pod.spec).toMatchObject({
      nodeSelector: { disk: 'ssd' },
      automountServiceAccountToken: true,
      restartPolicy: 'Never',
      terminationGracePeriodSeconds: 45,
      containers: [
        { name: 'runner', image: 'img', resources: { limits: { memory: '1Gi' } } },
        { name: 'proxy', image: 'p' },
      ],
      initContainers: [{ name: 'dind' }],
    });
    expect(pod.spec!.containers).toHaveLength(2);
  });

  test("the request's template is merged into the worker's by name or mount path; other fields are replaced", () => {
    const pod = build(
      {
        template: {
          spec: {
            tolerations: [{ key: 'b' }],
            volumes: [{ name: 'work', emptyDir: { medium: 'Memory' } }],
            containers: [{ name: 'runner', volumeMounts: [{ mountPath: '/w', name: 'work2' }] }],
          },
        },
      },
      {
        template: {
          metadata: { labels: { a: '1' } },
          spec: {
            tolerations: [{ key: 'a' }],
            securityContext: { runAsUser: 1 },
            volumes: [
              { name: 'work', emptyDir: {} },
              { name: 'cache', emptyDir: {} },
            ],
            containers: [
              {
                name: 'runner',
                volumeMounts: [
                  { mountPath: '/w', name: 'work' },
                  { mountPath: '/c', name: 'cache' },
                ],
                resources: { limits: { cpu: '1' } },
              },
            ],
          },
        },
      },
    );
    expect(pod.metadata!.labels).toMatchObject({ a: '1' });
    expect(pod.spec).toMatchObject({
      tolerations: [{ key: 'b' }],
      securityContext: { runAsUser: 1 },
      volumes: [{ name: 'work', emptyDir: { medium: 'Memory' } }, { name: 'cache' }],
    });
    expect(pod.spec!.containers).toEqual([
      {
        name: 'runner',
        image: 'img',
        securityContext: UNPRIVILEGED,
        volumeMounts: [
          { mountPath: '/w', name: 'work2' },
          { mountPath: '/c', name: 'cache' },
        ],
        resources: { limits: { cpu: '1' } },
      },
    ]);
  });
});

describe('registrationSecret', () => {
  test.each([
    [
      'JIT',
      { runnerName: 'r', runnerId: '7', env: { ACTIONS_RUNNER_INPUT_JITCONFIG: 'ünïcode=' } },
    ],
    ['token', { runnerName: 'r', env: { RUNNER_TOKEN: 'AAAABBBB', RUNNER_URL: 'https://x' } }],
  ])('is read as it was stored: %s', (_, registration) => {
    const secret = registrationSecret(identity, registration, 'main');
    expect(parseRegistrationSecret(secret)).toEqual(registration);
    expect(secret.metadata!.name).toBe(build().metadata!.name);
    expect(JSON.stringify(secret.metadata)).not.toContain(Object.values(registration.env)[0]);
  });
});
