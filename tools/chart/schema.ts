/**
 * The JSON schema of the chart's values, with which Helm validates them. Types come from the
 * defaults; this file adds what a default cannot express.
 */
import { parse } from 'yaml';
import { z } from 'zod';
import { podPolicySchema } from '../../activities/compute/kubernetes/podPolicy/podPolicy.ts';
import { SET_CAPACITIES } from '../../core/contract/index.ts';
import { MAX_RUNNERS } from '../../core/input/runnerSetSchema.ts';
import { MAX_SET_NAME } from '../../core/domain/setRunnerNames.ts';
import { settings } from '../../worker/settings/settings.ts';

type Schema = Readonly<Record<string, unknown>>;

const object: Schema = { type: 'object' };
const objects: Schema = { type: 'array', items: object };
const strings: Schema = { type: 'array', items: { type: 'string', minLength: 1 } };
const count = (minimum: number): Schema => ({ type: 'integer', minimum });
const closed = (properties: Schema, required: readonly string[] = []): Schema => ({
  type: 'object',
  properties,
  additionalProperties: false,
  ...(required.length > 0 && { required }),
});
const dnsLabel: Schema = { type: 'string', pattern: '^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$' };
const githubUrl: Schema = { type: 'string', pattern: '^(https?://[^/]+/[^/]+(/[^/]+)?/?)?$' };

/**
 * Settings that other values or the chart itself set. If a user set them too, one of the two would
 * be ignored. Namespaces need permissions, which the chart grants.
 */
export const SETTINGS_FROM_OTHER_VALUES = [
  'HOLDFAST_TASK_QUEUE', 'HOLDFAST_COMPUTE', 'HOLDFAST_INSTALLATION', 'HOLDFAST_CODEC_KEY_FILE', 'HOLDFAST_TEMPORAL_API_KEY_FILE', 'HOLDFAST_KUBERNETES_NAMESPACE', 'HOLDFAST_RUNNER_SET_RESOURCE_NAMESPACE', 'HOLDFAST_NAMESPACES', 'HOLDFAST_JOB_POD_NAMESPACES', 'HOLDFAST_KUBECONFIG', 'HOLDFAST_KUBE_CONTEXT', 'HOLDFAST_STATE_DIR', 'HOLDFAST_ALLOW_ANY_COMMAND',
  'HOLDFAST_POD_POLICY_FILE', 'HOLDFAST_POD_TEMPLATE_FILE', 'HOLDFAST_RUNNER_IMAGE', 'HOLDFAST_SUPERVISOR_IMAGE', 'HOLDFAST_GITHUB_TOKEN', 'HOLDFAST_GITHUB_TOKEN_FILE', 'HOLDFAST_GITHUB_RERUNS', 'HOLDFAST_CREDENTIALS',
  'HOLDFAST_CREDENTIALS_FILE', 'HOLDFAST_TIMEOUTS_FILE', 'HOLDFAST_HTTP_ADDRESS', 'HOLDFAST_WEBHOOK_ADDRESS', 'HOLDFAST_WEBHOOK_SECRET', 'HOLDFAST_WEBHOOK_SECRET_FILE',
]; // prettier-ignore

/** Settings that can be given as JSON or as an object. */
const DOCUMENTS = new Set(['HOLDFAST_TIMEOUTS']);

const settingsSchema = closed(
  Object.fromEntries(
    Object.keys(settings.shape)
      .filter((name) => !SETTINGS_FROM_OTHER_VALUES.includes(name))
      .map((name) => [
        name,
        { type: ['string', 'number', 'boolean', ...(DOCUMENTS.has(name) ? ['object'] : [])] },
      ]),
  ),
);

/**
 * Removes patterns with a lookahead, which Helm's regular expressions (RE2) do not support. The
 * worker validates these settings when it starts.
 */
const withoutLookahead = (key: string, value: unknown): unknown =>
  key === 'pattern' && String(value).includes('(?!') ? undefined : value;
const { $schema: _dialect, ...podPolicy } = JSON.parse(
  JSON.stringify(z.toJSONSchema(podPolicySchema, { io: 'input' }), withoutLookahead),
) as Schema;

const proxyServer = closed(
  { url: { type: 'string', minLength: 1 }, credentialSecretRef: { type: 'string', minLength: 1 } },
  ['url'],
);
const proxy = closed({ http: proxyServer, https: proxyServer, noProxy: strings });
const keyRef = closed(
  { name: { type: 'string', minLength: 1 }, key: { type: 'string', minLength: 1 } },
  ['name', 'key'],
);
const githubServerTLS = closed({
  certificateFrom: {
    ...closed({ configMapKeyRef: keyRef, secretKeyRef: keyRef }),
    minProperties: 1,
    maxProperties: 1,
  },
});

const set: Schema = closed(
  {
    // Of the resource.
    name: {
      type: 'string',
      pattern: '^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$',
      maxLength: MAX_SET_NAME,
    },
    githubConfigUrl: githubUrl,
    minRunners: { ...count(0), maximum: MAX_RUNNERS },
    maxRunners: { ...count(0), maximum: MAX_RUNNERS },
    replicas: { ...count(0), maximum: MAX_RUNNERS },
    labels: { ...strings, minItems: 1 },
    runnerGroup: { type: 'string', minLength: 1 },
    runnerGroupId: { type: 'string', minLength: 1 },
    demand: { enum: ['webhook', 'scaleSet'] },
    scaleSet: closed({ name: { type: 'string', minLength: 1 }, adopt: { type: 'boolean' } }),
    capacity: { enum: [...SET_CAPACITIES] },
    proxy,
    githubServerTLS,
    template: closed({ metadata: object, spec: object }),
    containerMode: closed(
      {
        type: { enum: ['', 'dind', 'kubernetes', 'kubernetes-novolume'] },
        namespace: dnsLabel,
        kubernetesModeWorkVolumeClaim: object,
      },
      ['type'],
    ),
    // The worker validates the content. The condition of the resource reports errors.
    set: object,
  },
  ['name'],
);

/**
 * Values of gha-runner-scale-set that are fields of a set in this chart. The schema accepts them,
 * so that the chart can name the right place (templates/_sets.tpl).
 */
const FIELDS_OF_A_SET = [
  'minRunners',
  'maxRunners',
  'runnerGroup',
  'runnerScaleSetName',
  'containerMode',
  'template',
] as const;

/** Schemas by path, which replace the schema derived from the default. */
const SAID: Readonly<Record<string, Schema>> = {
  'image.pullPolicy': { enum: ['Always', 'IfNotPresent', 'Never'] },
  imagePullSecrets: objects,
  'temporal.address': { type: 'string', pattern: '^[^/]+:[0-9]+$' },
  'traces.endpoint': { type: 'string', pattern: '^(https?://[^/]+:[0-9]+(/.*)?)?$' },
  'traces.ratio': { type: 'number', minimum: 0, maximum: 1 },
  installation: { anyOf: [dnsLabel, { const: '' }] },
  'networkPolicies.workersPorts': {
    type: 'array',
    items: { type: 'integer', minimum: 1, maximum: 65_535 },
  },
  'networkPolicies.workersEgress': objects,
  runnersNamespace: dnsLabel,
  namespaces: { type: 'array', items: dnsLabel, uniqueItems: true },
  runnerSetNamespace: { type: 'string', pattern: '^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)?$' },
  githubConfigUrl: githubUrl,
  githubConfigSecret: {
    oneOf: [
      { type: 'string' },
      closed({ github_token: { type: 'string' } }, ['github_token']),
      closed(
        {
          github_app_id: { type: ['string', 'integer'] },
          github_app_installation_id: { type: ['string', 'integer'] },
          github_app_private_key: { type: 'string' },
        },
        ['github_app_id', 'github_app_installation_id', 'github_app_private_key'],
      ),
    ],
  },
  proxy,
  githubServerTLS,
  githubAuth: { enum: ['token', 'app'] },
  githubReruns: { type: 'boolean' },
  credentials: { type: 'object', additionalProperties: object },
  credentialSecrets: strings,
  settings: settingsSchema,
  podPolicy,
  podTemplate: closed({ metadata: object, spec: object }),
  sets: { type: 'array', items: set },
  'worker.replicas': count(0),
  'metrics.dashboards.labels': { type: 'object', additionalProperties: { type: 'string' } },
  'worker.env': objects,
  'worker.autoscaling.minReplicas': count(1),
  'worker.autoscaling.maxReplicas': count(1),
  'webhook.service.type': { enum: ['ClusterIP', 'NodePort', 'LoadBalancer'] },
  'webhook.httpRoute.parentRefs': objects,
  'networkPolicies.runnersExcept': strings,
  'networkPolicies.runnersEgress': objects,
  'networkPolicies.dns.podLabels': object,
};

/** Paths of Kubernetes objects, whose content the API server validates. */
const ANY_OBJECT = /(^|\.)(resources|podSpec|podLabels|podAnnotations|annotations|labels)$/;

/** The file's text, a line for each value of the top. @param yaml - deploy/chart/values.yaml */
export function valuesSchemaText(yaml: string): string {
  const { properties, ...others } = valuesSchema(yaml) as { properties: Schema };
  const lines = Object.entries(properties).map(
    ([name, schema]) => `    ${JSON.stringify(name)}: ${JSON.stringify(schema)}`,
  );
  return `${JSON.stringify({ ...others, properties: {} }, undefined, 2).replace('"properties": {}', () => `"properties": {\n${lines.join(',\n')}\n  }`)}\n`;
}

function valuesSchema(yaml: string): Schema {
  const used = new Set<string>();
  const schema = {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'Values of the chart holdfast',
    ...schemaOf(parse(yaml), '', used),
  };
  const unused = Object.keys(SAID).filter((path) => !used.has(path));
  if (unused.length > 0) throw new Error(`no such values: ${unused.join(', ')}`);
  return schema;
}

function schemaOf(value: unknown, path: string, used: Set<string>): Schema {
  const said = SAID[path];
  if (said !== undefined) {
    used.add(path);
    return said;
  }
  if (ANY_OBJECT.test(path)) return object;
  if (typeof value === 'number') return count(0);
  if (typeof value === 'string' || typeof value === 'boolean') return { type: typeof value };
  if (
    typeof value !== 'object' ||
    value === null ||
    Array.isArray(value) ||
    Object.keys(value).length === 0
  )
    throw new Error(`${path}: its default does not tell what it may be`);
  const properties = Object.fromEntries(
    Object.entries(value).map(([key, each]) => [
      key,
      schemaOf(each, path === '' ? key : `${path}.${key}`, used),
    ]),
  );
  if (path !== '') return closed(properties);
  // Helm hands charts that use this one their `global`.
  const elsewhere = Object.fromEntries(FIELDS_OF_A_SET.map((name) => [name, {}]));
  return closed({ ...properties, global: object, ...elsewhere });
}
