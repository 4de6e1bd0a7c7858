import { describe, expect, test } from '@jest/globals';
import { podSpec, type PodDefaults } from '../../activities/compute/kubernetes/podSpec.ts';
import { annotatedRegistration, registrationAnnotations, registrationOf, registrationSecret } from '../../activities/compute/kubernetes/registrationSecret.ts';
import type { PodRequest } from '../../core/domain/pod.ts';

const identity = { workflowId: 'runner-a', firstRunId: 'r-1', attempt: 2 };
const request: PodRequest = { identity, image: 'img', labels: { 'holdfast.dev/set': 'blue', 'holdfast.dev/scope': 'octo/repo' }, terminationGracePeriodSeconds: 45 };
const build = (more: Partial<PodRequest> = {}, defaults: PodDefaults = {}, keys: string[] = []) =>
  podSpec({ ...request, ...more }, defaults, 'main', keys.length > 0 ? { secretName: 's', keys } : undefined);
const runnerOf = (...of: Parameters<typeof build>) => build(...of).spec!.containers[0]!;

describe('podSpec', () => {
  test('without a template', () => {
    expect(build({}, {}, ['RUNNER_TOKEN'])).toEqual({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: {
        name: expect.stringMatching(/^runner-a-[0-9a-f]{10}$/),
        labels: { 'holdfast.dev/set': 'blue', 'holdfast.dev/scope': 'octo-repo', 'app.kubernetes.io/managed-by': 'holdfast', 'holdfast.dev/installation': 'main', 'holdfast.dev/workflow': 'runner-a' },
        annotations: { 'holdfast.dev/workflow-id': 'runner-a', 'holdfast.dev/first-run-id': 'r-1', 'holdfast.dev/attempt': '2' },
      },
      spec: {
        automountServiceAccountToken: false,
        enableServiceLinks: false,
        restartPolicy: 'Never',
        terminationGracePeriodSeconds: 45,
        containers: [{ name: 'runner', image: 'img', env: [{ name: 'RUNNER_TOKEN', valueFrom: { secretKeyRef: { name: 's', key: 'RUNNER_TOKEN' } } }] }],
      },
    });
  });

  test('notes what the sweep has to know when nobody else is left', () => {
    const at = { scope: { kind: 'repository', name: 'octo/repo' }, credential: 'app' } as const;
    const noted = { 'holdfast.dev/runner-name': 'r-1', 'holdfast.dev/runner-id': '7', 'holdfast.dev/scope': 'repository/octo/repo', 'holdfast.dev/credential': 'app' };
    const annotations = registrationAnnotations({ runnerName: 'r-1', runnerId: 7, at, env: { TOKEN: 'secret' } });
    expect(annotations).toEqual(noted);
    expect(annotatedRegistration(annotations)).toEqual({ runnerName: 'r-1', runnerId: 7, at });
    expect(podSpec({ ...request, jobTimeoutCapMs: 5_400_000 }, {}, 'main', { secretName: 's', keys: [], annotations }).metadata?.annotations).toMatchObject({ ...noted, 'holdfast.dev/job-timeout-cap': '1h30m0s' });
  });

  test('env: defaults, template, request, Secret; each name once, the last wins', () => {
    const container = { name: 'runner', env: [{ name: 'A', value: 'template' }, { name: 'B', value: 'template' }, { name: 'C', value: 'template' }] };
    const defaults = { env: { A: 'default', D: 'default', ACTIONS_RUNNER_INPUT_JITCONFIG: 'default' } };
    expect(runnerOf({ template: { spec: { containers: [container] } }, env: { B: 'request' } }, defaults, ['ACTIONS_RUNNER_INPUT_JITCONFIG', 'C']).env).toEqual([
      { name: 'A', value: 'template' },
      { name: 'D', value: 'default' },
      { name: 'ACTIONS_RUNNER_INPUT_JITCONFIG', valueFrom: { secretKeyRef: { name: 's', key: 'ACTIONS_RUNNER_INPUT_JITCONFIG' } } },
      { name: 'B', value: 'request' },
      { name: 'C', valueFrom: { secretKeyRef: { name: 's', key: 'C' } } },
    ]);
  });

  test.each([
    ['the request', { image: 'request' }, 'request'],
    ['else the template', { image: undefined }, 'template'],
  ])('image: %s', (_, more, expected) => {
    const { image: _image, ...bare } = request;
    const pod = podSpec({ ...bare, ...(more.image ? { image: more.image } : {}), template: { spec: { containers: [{ name: 'runner', image: 'template' }] } } }, { image: 'default' }, 'main', undefined);
    expect(pod.spec!.containers[0]!.image).toBe(expected);
  });

  test("image: else the worker's default; else an error", () => {
    const { image: _image, ...bare } = request;
    expect(podSpec(bare, { image: 'default' }, 'main', undefined).spec!.containers[0]!.image).toBe('default');
    expect(() => podSpec(bare, {}, 'main', undefined)).toThrow(/No image for the runner container/);
  });

  test("the supervisor's settings reach it as they were written: Kubernetes would make one of two $", () => {
    const supervision = { watches: 'command', oneJob: true, onTerm: 'stop', drainTimeoutMs: 0, signalTimeoutMs: 1, cleanupTimeoutMs: 1, stopTo: 'group', startupMs: 1, cleanupCommand: ['sh', '-c', 'echo $$ $(HOME)'] } as const;
    const { env } = runnerOf({ command: ['work'], supervision }, { supervisor: { image: 'sup' } });
    expect(env).toContainEqual({ name: 'HOLDFAST_CLEANUP_COMMAND', value: '["sh","-c","echo $$$$ $$(HOME)"]' });
  });

  test('the supervisor writes its record to where the template has the kubelet read it', () => {
    const supervision = { watches: 'command', oneJob: true, onTerm: 'stop', drainTimeoutMs: 0, signalTimeoutMs: 1, cleanupTimeoutMs: 1, stopTo: 'group', startupMs: 1 } as const;
    const template = { spec: { containers: [{ name: 'runner', terminationMessagePath: '/tmp/end' }] } };
    expect(runnerOf({ command: ['work'], supervision, template }, { supervisor: { image: 'sup' } }).env).toContainEqual({ name: 'HOLDFAST_TERMINATION_LOG', value: '/tmp/end' });
    expect(runnerOf({ command: ['work'], supervision }, { supervisor: { image: 'sup' } }).env).not.toContainEqual(expect.objectContaining({ name: 'HOLDFAST_TERMINATION_LOG' }));
  });

  test('command and args replace those below', () => {
    const container = { name: 'runner', command: ['t'], args: ['t'] };
    expect(runnerOf({ command: ['r'], template: { spec: { containers: [container] } } }, { command: ['d'], args: ['d'] })).toMatchObject({ command: ['r'], args: ['t'] });
    expect(runnerOf({})).not.toHaveProperty('command');
  });

  test('the default command belongs to the default image: another image has its own entry point', () => {
    const { image: _, ...imageless } = request;
    const defaults = { image: 'default', command: ['d'], args: ['e'] };
    const byDefault = podSpec(imageless, defaults, 'main', undefined).spec!.containers[0]!;
    expect(byDefault).toMatchObject({ image: 'default', command: ['d'], args: ['e'] });
    expect(runnerOf({}, defaults)).not.toHaveProperty('command');
    expect(runnerOf({ template: { spec: { containers: [{ name: 'runner', image: 'mine' }] } } }, defaults)).not.toHaveProperty('args');
  });

  test("the runner's container comes first, other containers and fields of the template stay", () => {
    const template = {
      metadata: { labels: { team: 'x' }, annotations: { note: 'y' } },
      spec: {
        nodeSelector: { disk: 'ssd' },
        automountServiceAccountToken: true,
        containers: [{ name: 'proxy', image: 'p' }, { name: 'runner', resources: { limits: { memory: '1Gi' } } }],
        initContainers: [{ name: 'dind', image: 'docker:dind', restartPolicy: 'Always' }],
      },
    };
    const pod = build({ template });
    expect(pod.metadata).toMatchObject({ labels: { team: 'x', 'holdfast.dev/installation': 'main' }, annotations: { note: 'y', 'holdfast.dev/attempt': '2' } });
    expect(pod.spec).toMatchObject({
      nodeSelector: { disk: 'ssd' },
      automountServiceAccountToken: true,
      restartPolicy: 'Never',
      terminationGracePeriodSeconds: 45,
      containers: [{ name: 'runner', image: 'img', resources: { limits: { memory: '1Gi' } } }, { name: 'proxy', image: 'p' }],
      initContainers: [{ name: 'dind' }],
    });
    expect(pod.spec!.containers).toHaveLength(2);
  });

  test("the request's template is laid upon the worker's: by name, by mount path, else replaced", () => {
    const pod = build(
      { template: { spec: { tolerations: [{ key: 'b' }], volumes: [{ name: 'work', emptyDir: { medium: 'Memory' } }], containers: [{ name: 'runner', volumeMounts: [{ mountPath: '/w', name: 'work2' }] }] } } },
      {
        template: {
          metadata: { labels: { a: '1' } },
          spec: {
            tolerations: [{ key: 'a' }],
            securityContext: { runAsUser: 1 },
            volumes: [{ name: 'work', emptyDir: {} }, { name: 'cache', emptyDir: {} }],
            containers: [{ name: 'runner', volumeMounts: [{ mountPath: '/w', name: 'work' }, { mountPath: '/c', name: 'cache' }], resources: { limits: { cpu: '1' } } }],
          },
        },
      },
    );
    expect(pod.metadata!.labels).toMatchObject({ a: '1' });
    expect(pod.spec).toMatchObject({ tolerations: [{ key: 'b' }], securityContext: { runAsUser: 1 }, volumes: [{ name: 'work', emptyDir: { medium: 'Memory' } }, { name: 'cache' }] });
    expect(pod.spec!.containers).toEqual([
      { name: 'runner', image: 'img', volumeMounts: [{ mountPath: '/w', name: 'work2' }, { mountPath: '/c', name: 'cache' }], resources: { limits: { cpu: '1' } } },
    ]);
  });
});

describe('registrationSecret', () => {
  test.each([
    ['JIT', { runnerName: 'r', runnerId: 7, env: { ACTIONS_RUNNER_INPUT_JITCONFIG: 'ünïcode=' } }],
    ['token', { runnerName: 'r', env: { RUNNER_TOKEN: 'AAAABBBB', RUNNER_URL: 'https://x' } }],
  ])('is read back as it was stored: %s', (_, registration) => {
    const secret = registrationSecret(identity, registration, 'main');
    expect(registrationOf(secret)).toEqual(registration);
    expect(secret.metadata!.name).toBe(build().metadata!.name);
    expect(JSON.stringify(secret.metadata)).not.toContain(Object.values(registration.env)[0]);
  });
});
