/** Pods of jobs' steps whose worker has a store. */
import { describe, expect, test } from '@jest/globals';
import type { V1Container, V1Pod } from '@kubernetes/client-node';
import { admissionPolicy } from '../../activities/compute/kubernetes/podPolicy/admissionPolicy.ts';
import { DEFAULT_POD_POLICY } from '../../activities/compute/kubernetes/podPolicy/podPolicy.ts';
import {
  toPolicyInput,
  policyViolations,
} from '../../activities/compute/kubernetes/podPolicy/policyViolations.ts';
import {
  podErrors,
  podSpec,
  type PodDefaults,
} from '../../activities/compute/kubernetes/podSpec.ts';
import type { PodRequest, PodTemplate } from '../../core/domain/pod.ts';
import { parseJobInput } from '../../core/input/job.ts';
import { parseRunnerInput } from '../../core/input/runner.ts';

const STORE: PodDefaults = {
  supervisor: { image: 'sup:1' },
  store: { image: 'sup:1', place: { claim: 'artifacts' } },
};
const OWN = { images: ['img', 'sup:1'], namespaces: ['ci'], store: 'artifacts' };
const SECRET = { name: 'cloud', mountPath: '/cloud', secret: { secretName: 'cloud' } };

/** The storage that its job requests, with the files of earlier steps. */
function requestOf(step: object = {}): PodRequest {
  const job = parseJobInput(
    {
      name: 'web',
      repository: 'Acme/Web',
      test: [{ name: 'unit', image: 'img', commands: 'make test', uploadTimeout: '5m', ...step }],
    },
    { workflowId: 'job-web', runId: 'run-1' },
  );
  const [admitted] = job.ok ? job.spec.steps : [];
  if (admitted === undefined) throw new Error(JSON.stringify(job));
  const runner = parseRunnerInput({
    ...admitted.runner,
    storage: {
      ...admitted.storage,
      sharedDirSources: ['shared/repositories/acme/web/web/run-1/pre-rent/1.json'],
    },
  });
  if (!runner.ok) throw new Error(JSON.stringify(runner.errors));
  return {
    ...runner.spec.pod,
    identity: { workflowId: admitted.workflowId, firstRunId: 'r', attempt: 2 },
  };
}

const podOf = (
  step: object = {},
  defaults: PodDefaults = STORE,
  template: PodTemplate = {},
): V1Pod => podSpec(requestOf(step), { ...defaults, template }, 'main', undefined);
const containers = ({ spec }: V1Pod): Record<string, V1Container> =>
  Object.fromEntries(
    [...(spec?.initContainers ?? []), ...(spec?.containers ?? [])].map((container) => [
      container.name,
      container,
    ]),
  );
const envOf = (container: V1Container | undefined): Record<string, string | undefined> =>
  Object.fromEntries((container?.env ?? []).map(({ name, value }) => [name, value]));
const mountsOf = (container: V1Container | undefined): string[] =>
  (container?.volumeMounts ?? []).map(({ name, readOnly }) =>
    readOnly === true ? `${name} ro` : name,
  );

test('the step passes files to its uploader in folders that both mount, and cannot access the store', () => {
  const pod = podOf();
  const { runner, 'holdfast-uploader': uploader, 'holdfast-shared': restore } = containers(pod);
  const path = 'repositories/acme/web/web/run-1/test-unit';
  expect(pod.spec?.containers.map(({ name }) => name)).toEqual(['holdfast-uploader', 'runner']);
  expect(mountsOf(runner).filter((name) => !/supervisor|pod-info/.test(name))).toEqual([
    'holdfast-shared',
    'holdfast-artifacts',
    'holdfast-records',
  ]);
  expect(mountsOf(uploader)).toEqual([
    'holdfast-store',
    'holdfast-store',
    'holdfast-shared ro',
    'holdfast-artifacts ro',
    'holdfast-records ro',
  ]);
  expect(mountsOf(restore)).toEqual(['holdfast-store ro', 'holdfast-records']);
  expect(envOf(uploader)).toMatchObject({
    HOLDFAST_UPLOAD_TO: `artifacts/${path}/2/`,
    HOLDFAST_UPLOAD_SHARED_KEY: `shared/${path}/2.json`,
    HOLDFAST_UPLOAD_TIMEOUT: '300000ms',
    HOLDFAST_PROBE_PORT: envOf(runner)['HOLDFAST_PROBE_PORT'],
  });
  expect(envOf(restore)['HOLDFAST_UPLOAD_SHARED_SOURCES']).toBe(
    `shared/${path}/1.json shared/repositories/acme/web/web/run-1/pre-rent/1.json`,
  );
  expect(envOf(runner)).toMatchObject({
    SHARED_DIR: '/holdfast-shared',
    ARTIFACT_DIR: '/holdfast-artifacts',
    HOLDFAST_LOG_FILE: '/holdfast-records/build-log.txt',
    HOLDFAST_SHARED_DIR: '/holdfast-shared',
    HOLDFAST_SHARED_SNAPSHOTS: '/holdfast-records',
  });
  expect(pod.spec?.volumes).toContainEqual({
    name: 'holdfast-store',
    persistentVolumeClaim: { claimName: 'artifacts' },
  });
  expect(pod.metadata?.annotations).toMatchObject({
    'holdfast.dev/upload-timeout': '5m0s',
    'kubectl.kubernetes.io/default-container': 'runner',
  });
});

test("containers mount only parts of the claim: the uploader its attempt's folder and SHARED_DIR, the restore container the files of the same run", () => {
  const { 'holdfast-uploader': uploader, 'holdfast-shared': restore } = containers(podOf());
  const run = 'repositories/acme/web/web/run-1';
  const parts = (container: V1Container | undefined): object[] =>
    (container?.volumeMounts ?? [])
      .filter(({ name }) => name === 'holdfast-store')
      .map(({ mountPath, subPath }) => ({ mountPath, subPath }));
  expect(parts(uploader)).toEqual(
    [`artifacts/${run}/test-unit/2`, `shared/${run}/test-unit`].map((subPath) => ({
      mountPath: `/store/${subPath}`,
      subPath,
    })),
  );
  expect(parts(restore)).toEqual([{ mountPath: `/store/shared/${run}`, subPath: `shared/${run}` }]);
});

describe('with a bucket', () => {
  const place = {
    bucket: 'artifacts',
    folder: 'ci',
    endpoint: 'http://s3.example.com',
    region: 'us-east-1',
    pathStyle: true,
  };
  const bucketOf = (more: object = {}): PodDefaults => ({
    supervisor: { image: 'sup:1' },
    store: { image: 'sup:1', place: { ...place, ...more } },
  });

  test('its key is only in the other containers of the step, as files, and in no variable', () => {
    const pod = podOf({ volumes: [SECRET] }, bucketOf({ secret: 'bucket-key' }));
    const {
      'holdfast-uploader': uploader,
      'holdfast-shared': restore,
      ...others
    } = containers(pod);
    for (const each of [uploader, restore]) {
      expect(each?.env?.filter(({ valueFrom }) => valueFrom !== undefined)).toEqual([]);
      expect(each?.volumeMounts).toContainEqual({
        name: 'holdfast-store',
        mountPath: '/store-key',
        readOnly: true,
      });
      expect(envOf(each)).toMatchObject({
        HOLDFAST_UPLOAD_BUCKET: 'artifacts',
        HOLDFAST_UPLOAD_FOLDER: 'ci',
        HOLDFAST_UPLOAD_ENDPOINT: 'http://s3.example.com',
        HOLDFAST_UPLOAD_REGION: 'us-east-1',
        HOLDFAST_UPLOAD_PATH_STYLE: 'true',
        HOLDFAST_UPLOAD_KEY: '/store-key',
      });
    }
    expect(Object.keys(others)).toContain('runner');
    expect(JSON.stringify([others, pod.metadata])).not.toMatch(
      /bucket-key|holdfast-store|AWS_|HOLDFAST_UPLOAD/,
    );
    expect(pod.spec?.volumes).toContainEqual({
      name: 'holdfast-store',
      secret: {
        secretName: 'bucket-key',
        defaultMode: 0o444,
        items: ['AWS_ACCESS_KEY_ID', 'AWS_SECRET_ACCESS_KEY'].map((key) => ({ key, path: key })),
      },
    });
  });

  test('without a key the identity of the pod is used', () => {
    expect(JSON.stringify(podOf({}, bucketOf()))).not.toContain('AWS_');
  });

  test.each(['shareProcessNamespace', 'hostPID'])(
    'with %s the step could read the key, so it is rejected',
    (field) => {
      expect(() =>
        podOf({}, bucketOf({ secret: 'bucket-key' }), { spec: { [field]: true } }),
      ).toThrow(`pod.spec.${field}: `);
    },
  );

  test('the key is permitted in these containers only', () => {
    const own = { images: ['img', 'sup:1'], namespaces: ['ci'], storeSecret: 'bucket-key' };
    const judge = (pod: V1Pod): string[] =>
      policyViolations(toPolicyInput(pod, requestOf(), 'ci'), DEFAULT_POD_POLICY, own);
    expect(judge(podOf({}, bucketOf({ secret: 'bucket-key' })))).toEqual([]);
    expect(
      judge(
        podOf(
          { volumes: [{ name: 'mine', mountPath: '/mine', secret: { secretName: 'bucket-key' } }] },
          bucketOf({ secret: 'bucket-key' }),
        ),
      ),
    ).toEqual([expect.stringContaining('the Secret "bucket-key" is not allowed by "secrets"')]);
  });
});

test('its Secrets are mounted for masking, each in a separate folder', () => {
  const { 'holdfast-uploader': uploader } = containers(
    podOf({ volumes: [SECRET, { name: 'cache', mountPath: '/cache', emptyDir: {} }] }),
  );
  expect(uploader?.volumeMounts).toContainEqual({
    name: 'cloud',
    mountPath: '/secrets/cloud',
    readOnly: true,
  });
  expect(mountsOf(uploader)).not.toContain('cache ro');
  expect(envOf(uploader)['HOLDFAST_UPLOAD_SECRETS']).toBe('/secrets');
});

test('Secrets in its variables are also mounted for masking, only in its uploader', () => {
  const pod = podOf({}, STORE, {
    spec: {
      containers: [
        {
          name: 'runner',
          env: [
            { name: 'A', valueFrom: { secretKeyRef: { name: 'npm', key: 'token' } } },
            { name: 'B', valueFrom: { secretKeyRef: { name: 'npm', key: 'user' } } },
          ],
          envFrom: [{ secretRef: { name: 'cloud' } }],
        },
      ],
    },
  });
  const secrets = pod.spec?.volumes?.filter(({ secret }) => secret !== undefined);
  expect(secrets).toEqual([
    { name: 'holdfast-masked-0', secret: { secretName: 'npm', optional: true } },
    { name: 'holdfast-masked-1', secret: { secretName: 'cloud', optional: true } },
  ]);
  const mounting = Object.entries(containers(pod)).filter(([, container]) =>
    mountsOf(container).some((name) => name.startsWith('holdfast-masked-')),
  );
  expect(mounting.map(([name]) => name)).toEqual(['holdfast-uploader']);
  const [[, uploader] = []] = mounting;
  expect(uploader?.volumeMounts).toContainEqual({
    name: 'holdfast-masked-1',
    mountPath: '/secrets/holdfast-masked-1',
    readOnly: true,
  });
  expect(envOf(uploader)['HOLDFAST_UPLOAD_SECRETS']).toBe('/secrets');
});

test.each<[what: string, ofPod: object, user: number, nonRoot: boolean]>([
  ['no user given: root', {}, 0, false],
  ['root', { runAsUser: 0 }, 0, false],
  ['a number', { runAsUser: 1234 }, 1234, true],
  ['only runAsNonRoot', { runAsNonRoot: true }, 1000, true],
])('it runs as the same user as the step; %s', (_what, securityContext, user, nonRoot) => {
  const { 'holdfast-uploader': uploader } = containers(
    podOf({}, STORE, { spec: { securityContext } }),
  );
  expect(uploader?.securityContext).toMatchObject({
    runAsUser: user,
    runAsNonRoot: nonRoot,
    capabilities: { drop: ['ALL'] },
    readOnlyRootFilesystem: true,
    allowPrivilegeEscalation: false,
  });
});

test.each<[what: string, defaults: PodDefaults]>([
  ['no store', { supervisor: { image: 'sup:1' } }],
  ['no supervisor, which reports its end', {}],
])('%s: no file is stored, and the step has no folders', (_what, defaults) => {
  const pod = podOf({}, defaults);
  expect(pod.spec?.containers.map(({ name }) => name)).toEqual(['runner']);
  expect(JSON.stringify(pod)).not.toMatch(/SHARED_DIR|holdfast-store/);
});

describe("only the uploader may mount the store's claim", () => {
  const judge = (pod: V1Pod): string[] =>
    policyViolations(toPolicyInput(pod, requestOf(), 'ci'), DEFAULT_POD_POLICY, OWN);

  test("the policy permits it in a step's pod, and in no pod that mounts it itself", () => {
    expect(judge(podOf())).toEqual([]);
    expect(
      judge(
        podOf({
          volumes: [
            { name: 'mine', mountPath: '/mine', persistentVolumeClaim: { claimName: 'artifacts' } },
          ],
        }),
      ),
    ).toEqual([expect.stringContaining('the claim "artifacts" is not allowed by "claims"')]);
  });

  test('the admission policy checks the same', () => {
    const policies = admissionPolicy(DEFAULT_POD_POLICY, OWN, {
      name: 'p',
      serviceAccount: 'ci/worker',
    });
    const text = JSON.stringify(policies);
    expect(text).toContain('\\"store\\": dyn(\\"artifacts\\")');
    expect(text).toContain(
      'v.name == \\"holdfast-store\\" && v.persistentVolumeClaim.claimName == variables.policy.store',
    );
  });

  test.each([
    [
      'a sidecar',
      { containers: [{ name: 'x', volumeMounts: [{ name: 'holdfast-store', mountPath: '/s' }] }] },
      'pod.spec.containers.0.volumeMounts.0',
    ],
    [
      'a container with the name of the uploader',
      { containers: [{ name: 'holdfast-uploader', image: 'mine' }] },
      'pod.spec.containers.0',
    ],
    [
      'a container with the name of the restore container',
      { initContainers: [{ name: 'holdfast-shared', image: 'mine' }] },
      'pod.spec.initContainers.0',
    ],
  ])('%s is rejected', (_what, spec, field) => {
    expect(parseRunnerInput({ ciServer: 'none', command: ['x'], pod: { spec } })).toMatchObject({
      ok: false,
      errors: [{ code: 'reserved', field }],
    });
  });
});

test.each<[what: string, storage: object]>([
  [
    'a folder that does not belong to a step',
    { path: 'repositories/acme/web/web/run-1', sharedDirSources: [] },
  ],
  ['a folder within that of a step', { path: 'jobs/web/run-1/test-unit/1', sharedDirSources: [] }],
  [
    'files of a step of another run',
    {
      path: 'jobs/web/run-1/test-unit',
      sharedDirSources: [
        'shared/jobs/web/run-1/pre-rent/1.json',
        'shared/jobs/web/run-2/pre-rent/1.json',
      ],
    },
  ],
  [
    'a file that is not a snapshot',
    {
      path: 'jobs/web/run-1/test-unit',
      sharedDirSources: ['artifacts/jobs/web/run-1/pre-rent/1/build-log.txt'],
    },
  ],
])('storage that names %s is rejected', (_what, storage) => {
  const parsed = parseRunnerInput({
    ciServer: 'none',
    command: ['x'],
    job: 'job-web',
    storage: { ...storage, timeout: '1m' },
  });
  expect(parsed).toMatchObject({ ok: false, errors: [{ code: 'invalid', field: 'storage' }] });
});

test.each<[what: string, storage: object, expected: string]>([
  ['without a job', { path: 'a', sharedDirSources: [], timeout: '1m' }, 'not_applicable storage'],
  [
    'outside of the store',
    { path: 'a/../b', sharedDirSources: [], timeout: '1m' },
    'invalid storage.path',
  ],
  [
    'with two keys in one field',
    { path: 'a', sharedDirSources: ['a b'], timeout: '1m' },
    'invalid storage.sharedDirSources.0',
  ],
])('storage %s is rejected', (_what, storage, expected) => {
  const parsed = parseRunnerInput({ ciServer: 'none', command: ['x'], storage });
  expect(parsed.ok ? [] : parsed.errors.map(({ code, field }) => `${code} ${field}`)).toEqual([
    expected,
  ]);
});

test.each<[what: string, securityContext: object, violations: RegExp[]]>([
  ['a user', { runAsUser: 1_000 }, []],
  ["the runtime's capabilities", { capabilities: { drop: [] } }, []],
  ['another capability', { capabilities: { add: ['NET_ADMIN'] } }, [/NET_ADMIN/]],
  ['full access to the node', { privileged: true }, [/privileged/]],
])('the pod policy checks the security context of a step: %s', (_what, securityContext, told) => {
  const pod = podOf({ securityContext });
  expect(containers(pod)['runner']?.securityContext).toMatchObject(securityContext);
  expect(policyViolations(toPolicyInput(pod, requestOf(), 'ci'), DEFAULT_POD_POLICY, OWN)).toEqual(
    told.map((violation) => expect.stringMatching(violation)),
  );
});

test('without a store ARTIFACT_DIR is deleted with the pod, and the step has no other containers', () => {
  const pod = podOf({}, { supervisor: { image: 'sup:1' } });
  const { runner, ...others } = containers(pod);
  expect(Object.keys(others)).toEqual(['holdfast-supervisor']);
  const { ARTIFACT_DIR, SHARED_DIR } = envOf(runner);
  expect(SHARED_DIR).toBeUndefined();
  expect(runner?.volumeMounts).toContainEqual({
    name: 'holdfast-artifacts',
    mountPath: ARTIFACT_DIR,
  });
  expect(pod.spec?.volumes).toContainEqual({ name: 'holdfast-artifacts', emptyDir: {} });
  const { store: _none, ...own } = OWN;
  expect(policyViolations(toPolicyInput(pod, requestOf(), 'ci'), DEFAULT_POD_POLICY, own)).toEqual(
    [],
  );
});

describe("without a store, with a claim for the step's job", () => {
  const DEFAULTS: PodDefaults = { jobClaim: { size: '1Gi' }, supervisor: { image: 'sup:1' } };
  const job = { workflowId: 'job-web', firstRunId: 'run-1', attempt: 0 };
  const ofJob = (owner = job): PodRequest => {
    const { storage, ...request } = requestOf();
    return { ...request, storage: { ...storage!, job: owner } };
  };
  const claimOf = (pod: V1Pod): string | undefined =>
    pod.spec?.volumes?.find(({ name }) => name === 'holdfast-job')?.persistentVolumeClaim
      ?.claimName;
  const built = (request = ofJob(), template: PodTemplate = {}): V1Pod =>
    podSpec(request, { ...DEFAULTS, template }, 'main', undefined);

  test('both directories are in the claim, the same for each step, and the step has no other containers', () => {
    const pod = built();
    const { runner, ...others } = containers(pod);
    expect(Object.keys(others)).toEqual(['holdfast-supervisor']);
    const { SHARED_DIR, ARTIFACT_DIR, HOLDFAST_SHARED_DIR } = envOf(runner);
    expect(HOLDFAST_SHARED_DIR).toBeUndefined();
    expect(runner?.volumeMounts).toEqual(
      expect.arrayContaining([
        { name: 'holdfast-job', mountPath: SHARED_DIR, subPath: 'shared' },
        { name: 'holdfast-job', mountPath: ARTIFACT_DIR, subPath: 'artifacts' },
      ]),
    );
    const next = { ...ofJob(), identity: { workflowId: 'w', firstRunId: 'r', attempt: 1 } };
    expect(claimOf(built(next))).toBe(claimOf(pod));
  });

  test.each([
    ['another job', { ...job, workflowId: 'job-other' }],
    ['another run of the job', { ...job, firstRunId: 'run-2' }],
  ])('%s has another claim', (_what, owner) => {
    expect(claimOf(built(ofJob(owner)))).not.toBe(claimOf(built()));
  });

  test.each<[what: string, template: PodTemplate, group: number]>([
    ['with every user of its image', {}, 1_000],
    ['with the group of the template', { spec: { securityContext: { fsGroup: 2_000 } } }, 2_000],
  ])('the step may write to it, %s', (_what, template, fsGroup) => {
    expect(built(ofJob(), template).spec?.securityContext).toEqual({
      seccompProfile: { type: 'RuntimeDefault' },
      fsGroup,
      fsGroupChangePolicy: 'OnRootMismatch',
    });
  });

  test('a runner without a known job is rejected', () => {
    expect(() => built(requestOf())).toThrow('storage');
  });

  test.each([false, true])(
    'the policy permits the claim of the same job only; untrusted: %s',
    (is) => {
      const request = { ...ofJob(), ...(is ? { untrusted: true as const } : {}) };
      const own = { images: ['img', 'sup:1'], namespaces: ['ci'] };
      const judge = (pod: V1Pod): string[] =>
        policyViolations(toPolicyInput(pod, request, 'ci'), DEFAULT_POD_POLICY, own);
      expect(judge(built())).toEqual([]);
      expect(judge(built(ofJob({ ...job, workflowId: 'job-other' })))).toEqual([
        expect.stringContaining('persistentVolumeClaim'),
      ]);
    },
  );

  test('the admission has no job yet, and checks the pod with a claim', () => {
    const { identity: _later, ...asked } = requestOf();
    const judged: V1Pod[] = [];
    expect(
      podErrors(asked, DEFAULTS, 'main', (pod) => {
        judged.push(pod);
        return [];
      }),
    ).toEqual([]);
    expect(claimOf(judged[0]!)).toBeDefined();
  });
});
