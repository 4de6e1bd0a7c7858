/** The default policy applied to every field of a pod in the API's own description. */
import * as kubernetes from '@kubernetes/client-node';
import { expect, test } from '@jest/globals';
import {
  ALLOWED_METADATA,
  ALLOWED_SPEC,
  unnamedFields,
  type FieldTree,
} from '../../activities/compute/kubernetes/podPolicy/allowedFields.ts';
import { DEFAULT_POD_POLICY } from '../../activities/compute/kubernetes/podPolicy/podPolicy.ts';
import {
  policyViolations,
  toPolicyInput,
} from '../../activities/compute/kubernetes/podPolicy/policyViolations.ts';

interface Attribute {
  readonly baseName: string;
  readonly type: string;
}
const models = kubernetes as unknown as Readonly<
  Record<string, { getAttributeTypeMap?: () => readonly Attribute[] } | undefined>
>;

/** One pod for each field: the objects around it, and the field itself. */
interface Sample {
  /** `spec.containers.image` */
  readonly path: string;
  readonly value: unknown;
}

const SCALARS: Readonly<Record<string, unknown>> = {
  string: 'x',
  number: 1,
  boolean: true,
  any: 1,
  IntOrString: 1,
  Date: '2026-01-01T00:00:00Z',
  V1MicroTime: '2026-01-01T00:00:00Z',
};

/** @returns a value for each field below this type, with nothing else in it */
function samples(type: string, path: string): Sample[] {
  const [, item] = /^Array<(.+)>$/.exec(type) ?? [];
  if (item !== undefined)
    return samples(item, path).map(({ path: at, value }) => ({ path: at, value: [value] }));
  if (type.startsWith('{')) return [{ path, value: { a: 'b' } }];
  if (type in SCALARS) return [{ path, value: SCALARS[type] }];
  const attributes = models[type]?.getAttributeTypeMap?.();
  if (attributes === undefined) throw new Error(`${path}: the type ${type} is not known`);
  return attributes.flatMap(({ baseName, type: of }) =>
    samples(of, `${path}.${baseName}`).map(({ path: at, value }) => ({
      path: at,
      value: { [baseName]: value },
    })),
  );
}

const SAMPLES = [
  ...samples('V1PodSpec', 'spec'),
  ...samples('V1ObjectMeta', 'metadata').filter(({ path }) => !path.includes('managedFields')),
];
const own = { images: ['x'], namespaces: ['ci'] };

/** A pod of Holdfast with this additional field. */
function judge({ path, value }: Sample): string[] {
  const given = value as { containers?: object[]; initContainers?: object[] };
  const isSpec = path.startsWith('spec.');
  const withImage = (containers: readonly object[]): object[] =>
    containers.map((each) => ({ image: 'x', ...each }));
  const { containers = [{}], initContainers = [], ...others } = isSpec ? given : {};
  const spec = {
    automountServiceAccountToken: false,
    ...others,
    containers: withImage(containers),
    initContainers: withImage(initContainers),
  };
  const template = isSpec ? {} : { metadata: given };
  const request = {
    identity: { workflowId: 'runner-a', firstRunId: 'r', attempt: 1 },
    terminationGracePeriodSeconds: 1,
    labels: {},
    template,
  };
  const metadata = isSpec ? {} : (given as { labels?: Record<string, string> });
  return policyViolations(
    toPolicyInput(
      {
        metadata: { name: 'runner-a-0123456789', ...metadata },
        spec: spec as kubernetes.V1PodSpec,
      },
      request as unknown as Parameters<typeof toPolicyInput>[1],
      'ci',
    ),
    DEFAULT_POD_POLICY,
    own,
  );
}

test('the API describes more fields than the policy names', () => {
  expect(SAMPLES.length).toBeGreaterThan(800);
});

test('the default policy allows these fields of a pod, with any value, and no others', () => {
  const allowed = SAMPLES.filter((sample) => judge(sample).length === 0).map(({ path }) => path);
  const INIT = 'spec.initContainers.';
  expect(
    allowed.filter((path) => path.startsWith(INIT)).map((path) => path.slice(INIT.length)),
  ).toEqual(
    allowed
      .filter((path) => path.startsWith('spec.containers.'))
      .map((path) => path.slice('spec.containers.'.length)),
  );
  expect(grouped(allowed.filter((path) => !path.startsWith(INIT)))).toMatchInlineSnapshot(`
   "spec.containers: args command image imagePullPolicy name restartPolicy stdin stdinOnce terminationMessagePath terminationMessagePolicy tty workingDir
   spec.containers.env: name value
   spec.containers.env.valueFrom.configMapKeyRef: key name optional
   spec.containers.env.valueFrom.fieldRef: apiVersion fieldPath
   spec.containers.env.valueFrom.resourceFieldRef: containerName divisor resource
   spec.containers.env.valueFrom.secretKeyRef: key optional
   spec.containers.envFrom.configMapRef: name optional
   spec.containers.envFrom: prefix
   spec.containers.envFrom.secretRef: optional
   spec.containers.lifecycle.postStart.exec: command
   spec.containers.lifecycle.postStart.httpGet.httpHeaders: name value
   spec.containers.lifecycle.postStart.httpGet: path port scheme
   spec.containers.lifecycle.postStart.sleep: seconds
   spec.containers.lifecycle.preStop.exec: command
   spec.containers.lifecycle.preStop.httpGet.httpHeaders: name value
   spec.containers.lifecycle.preStop.httpGet: path port scheme
   spec.containers.lifecycle.preStop.sleep: seconds
   spec.containers.lifecycle: stopSignal
   spec.containers.livenessProbe.exec: command
   spec.containers.livenessProbe: failureThreshold initialDelaySeconds periodSeconds successThreshold terminationGracePeriodSeconds timeoutSeconds
   spec.containers.livenessProbe.grpc: port service
   spec.containers.livenessProbe.httpGet.httpHeaders: name value
   spec.containers.livenessProbe.httpGet: path port scheme
   spec.containers.livenessProbe.tcpSocket: port
   spec.containers.ports: containerPort hostIP name protocol
   spec.containers.readinessProbe.exec: command
   spec.containers.readinessProbe: failureThreshold initialDelaySeconds periodSeconds successThreshold terminationGracePeriodSeconds timeoutSeconds
   spec.containers.readinessProbe.grpc: port service
   spec.containers.readinessProbe.httpGet.httpHeaders: name value
   spec.containers.readinessProbe.httpGet: path port scheme
   spec.containers.readinessProbe.tcpSocket: port
   spec.containers.resizePolicy: resourceName restartPolicy
   spec.containers.securityContext: allowPrivilegeEscalation readOnlyRootFilesystem runAsGroup runAsNonRoot runAsUser
   spec.containers.securityContext.appArmorProfile: type
   spec.containers.securityContext.capabilities: drop
   spec.containers.securityContext.seccompProfile: type
   spec.containers.startupProbe.exec: command
   spec.containers.startupProbe: failureThreshold initialDelaySeconds periodSeconds successThreshold terminationGracePeriodSeconds timeoutSeconds
   spec.containers.startupProbe.grpc: port service
   spec.containers.startupProbe.httpGet.httpHeaders: name value
   spec.containers.startupProbe.httpGet: path port scheme
   spec.containers.startupProbe.tcpSocket: port
   spec.containers.volumeDevices: devicePath name
   spec.containers.volumeMounts: mountPath name readOnly recursiveReadOnly subPath subPathExpr
   spec: dnsPolicy enableServiceLinks hostUsers restartPolicy shareProcessNamespace terminationGracePeriodSeconds
   spec.securityContext.appArmorProfile: type
   spec.securityContext: fsGroup fsGroupChangePolicy runAsGroup runAsNonRoot runAsUser supplementalGroups supplementalGroupsPolicy
   spec.securityContext.seccompProfile: type
   spec.volumes.configMap: defaultMode name optional
   spec.volumes.configMap.items: key mode path
   spec.volumes.downwardAPI: defaultMode
   spec.volumes.downwardAPI.items.fieldRef: apiVersion fieldPath
   spec.volumes.downwardAPI.items: mode path
   spec.volumes.downwardAPI.items.resourceFieldRef: containerName divisor resource
   spec.volumes.emptyDir: medium sizeLimit
   spec.volumes.ephemeral.volumeClaimTemplate.metadata: creationTimestamp
   spec.volumes.ephemeral.volumeClaimTemplate.spec: accessModes storageClassName volumeMode
   spec.volumes.ephemeral.volumeClaimTemplate.spec.resources: limits requests
   spec.volumes: name
   spec.volumes.projected: defaultMode
   spec.volumes.projected.sources.configMap.items: key mode path
   spec.volumes.projected.sources.configMap: name optional
   spec.volumes.projected.sources.downwardAPI.items.fieldRef: apiVersion fieldPath
   spec.volumes.projected.sources.downwardAPI.items: mode path
   spec.volumes.projected.sources.downwardAPI.items.resourceFieldRef: containerName divisor resource
   spec.volumes.projected.sources.secret.items: key mode path
   spec.volumes.projected.sources.secret: optional"
  `);
});

/** One line for each object, with its fields. */
function grouped(paths: readonly string[]): string {
  const objects = new Map<string, string[]>();
  for (const path of paths) {
    const [, parent = '', field = ''] = /^(.*)\.([^.]+)$/.exec(path) ?? [];
    objects.set(parent, [...(objects.get(parent) ?? []), field]);
  }
  return [...objects].map(([parent, fields]) => `${parent}: ${fields.join(' ')}`).join('\n');
}

test.each([
  ['spec', { newIn2030: true }],
  ['spec.containers', { containers: [{ name: 'runner', image: 'x', newIn2030: { a: 1 } }] }],
  ['spec.volumes.emptyDir', { volumes: [{ name: 'v', emptyDir: { newIn2030: 1 } }] }],
  ['spec.volumes', { volumes: [{ name: 'v', newIn2030: {} }] }],
])('a field that a later version of Kubernetes adds to %s is rejected', (_where, value) => {
  expect(judge({ path: 'spec.newIn2030', value })).toEqual([
    expect.stringMatching(/newIn2030.* is not allowed by "(fields|volumes)"/),
  ]);
});

test('every field of the allow-list is a field of the API', () => {
  const described = new Set(
    SAMPLES.flatMap(({ path }) =>
      path.split('.').map((_, i, all) => all.slice(0, i + 1).join('.')),
    ),
  );
  const paths = (tree: FieldTree, above: string): string[] =>
    Object.entries(tree).flatMap(([name, below]) => {
      const path = `${above}.${name}`;
      if (below === true) return [path];
      return [path, ...paths('0' in below ? (below[0] as FieldTree) : (below as FieldTree), path)];
    });
  expect(
    [...paths(ALLOWED_SPEC, 'spec'), ...paths(ALLOWED_METADATA, 'metadata')].filter(
      (path) => !described.has(path),
    ),
  ).toEqual([]);
  expect(unnamedFields({ containers: [{ image: 'x' }] }, ALLOWED_SPEC)).toEqual([]);
});
