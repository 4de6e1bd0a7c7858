/**
 * Converts an AutoscalingRunnerSet, and the values of the chart gha-runner-scale-set that create
 * one. Pure.
 */
import { MAX_RUNNERS } from '../../core/input/runnerSetSchema.ts';
import { isObject } from '../../core/domain/isObject.ts';
import type { ArcObject } from './arcObjects.ts';
import { addDockerDaemon, addJobPods } from './containerModes.ts';
import {
  convertFields,
  getPath,
  nested,
  ignored,
  copyTo,
  unsupported,
  type FieldRow,
  type FieldRows,
} from './fieldRows.ts';
import {
  omitDefaultImage,
  POD_SPEC_ROWS,
  POD_TEMPLATE_ROWS,
  podMetadataRow,
  sameField,
  serviceAccountRow,
} from './podRows.ts';
import { quoted, type Json, type SetDraft } from './setDraft.ts';

/** Maximum of a set if ARC has none, because a set needs one. */
const USUAL_MAX = 100;
const CHART_ACCOUNTS = [
  'actions.github.com/cleanup-no-permission-service-account-name',
  'actions.github.com/cleanup-kubernetes-mode-service-account-name',
] as const;

/**
 * Row of a URL such as `https://github.com/acme/app`:
 * https://docs.github.com/en/actions/how-tos/manage-runners/use-actions-runner-controller/deploy-runner-scale-sets
 */
const configUrlRow: FieldRow = (value, draft, field) => {
  const url = typeof value === 'string' && URL.canParse(value) ? new URL(value) : undefined;
  const parts = (url?.pathname ?? '').split('/').filter((part) => part !== '');
  const [first = '', second] = parts;
  if (
    url === undefined ||
    !/^https?:$/.test(url.protocol) ||
    parts.length === 0 ||
    parts.length > 2
  )
    return draft.addError(
      field,
      'must be the address of an organization, a repository or an enterprise, such as https://github.com/acme',
    );
  if (first === 'enterprises' && second !== undefined) draft.put('template', 'enterprise', second);
  else if (second !== undefined) draft.put('template', 'repository', `${first}/${second}`);
  else draft.put('template', 'organization', first);
  if (/^(www\.)?github\.com$/i.test(url.hostname)) return;
  const api = url.hostname.endsWith('.ghe.com')
    ? `https://api.${url.host}`
    : `https://${url.host}/api/v3`;
  draft.note(
    field,
    `the server is the credential's to name: apiUrl: ${api}, in the worker's HOLDFAST_CREDENTIALS_FILE`,
    'template',
    'credential',
  );
};

const secretRow: FieldRow = (value, draft, field) => {
  if (typeof value === 'string') return credentialFromSecret(value, draft, field);
  if (!isObject(value)) return draft.addError(field, 'must be the name of a Secret, or an object');
  const kind = getPath(value, 'github_app_id')
    ? 'type: app, with appId, installationId and privateKeyFile'
    : 'type: pat, with tokenFile';
  draft.note(
    field,
    `secrets are not copied. The worker's credential "default" is used, or one that you name here (credential: NAME): in HOLDFAST_CREDENTIALS_FILE ${kind}`,
    'template',
  );
};

/** Sets the credential of the worker with the name of ARC's Secret. */
export function credentialFromSecret(secret: string, draft: SetDraft, field: string): void {
  draft.put('template', 'credential', secret);
  draft.note(
    field,
    `the worker needs a credential of this name, with the values of that Secret (HOLDFAST_CREDENTIALS_FILE); remove the line to use the credential "default"`,
    'template',
    'credential',
  );
}

/** Row of the runner group. The default group is left out. */
export const groupRow: FieldRow = (value, draft) => {
  if (typeof value !== 'string' || value.toLowerCase() !== 'default')
    draft.put('template', 'runnerGroup', value);
};

const labelsRow: FieldRow = (value, draft, field) => {
  if (!Array.isArray(value)) return draft.addError(field, 'must be a list');
  draft.put('template', 'labels', [
    ...new Set([
      ...((draft.parts.template['labels'] as unknown[] | undefined) ?? []),
      ...(value as unknown[]),
    ]),
  ]);
};

/** Row of the proxy. ARC encodes the password of a Secret for the URL; Holdfast does not. */
const proxyRow: FieldRow = (value, draft, field) => {
  if (!isObject(value)) return draft.addError(field, 'must be an object');
  draft.put('template', 'proxy', value);
  draft.note(
    field,
    'for the runner only: the worker uses the proxy of its credential (proxy), otherwise https_proxy and no_proxy of its environment',
    'template',
    'proxy',
  );
  for (const scheme of ['http', 'https']) {
    const secret = getPath(value, scheme, 'credentialSecretRef');
    if (secret !== undefined)
      draft.note(
        `${field}.${scheme}.credentialSecretRef`,
        `username and password of the Secret ${quoted(secret)} are inserted into a URL unchanged: write characters such as @, : and / there as %40, %3A and %2F`,
        'template',
        'proxy',
      );
  }
};

const tlsRow: FieldRow = (value, draft, field) => {
  const [name, key, path] = [
    getPath(value, 'certificateFrom', 'configMapKeyRef', 'name'),
    getPath(value, 'certificateFrom', 'configMapKeyRef', 'key'),
    getPath(value, 'runnerMountPath'),
  ];
  draft.note(
    field,
    'for the runner only: the worker uses the certificates of its credential (caFile)',
    'template',
  );
  // Without a path, ARC's runners do not get the certificate.
  if (typeof path !== 'string') return;
  if (typeof name !== 'string' || typeof key !== 'string')
    return draft.addError(`${field}.certificateFrom.configMapKeyRef`, 'must have a name and a key');
  draft.put('template', 'ca', { configMapKeyRef: { name, key } });
};

const VAULT = unsupported(
  'left out: secrets of credentials are files of the worker (tokenFile, privateKeyFile), which an agent or the Secrets Store CSI driver may fill',
  'template',
);
const LISTENER = unsupported(
  'left out: the worker reads the scale set itself, without a pod for it',
  'set',
);
const METRICS = unsupported('left out: the metrics of sets are in docs/configuration.md', 'set');
const METADATA = unsupported('left out: these are labels of objects that only ARC makes', 'set');

/** Rows for an AutoscalingRunnerSet and for values of the chart. */
const COMMON_ROWS: FieldRows = {
  githubConfigUrl: configUrlRow,
  githubConfigSecret: secretRow,
  runnerGroup: groupRow,
  // convertArc.ts reads the name of the scale set, which jobs request.
  runnerScaleSetName: ignored,
  minRunners: copyTo('set', 'minIdle'),
  maxRunners: copyTo('set', 'max'),
  proxy: proxyRow,
  githubServerTLS: tlsRow,
  listenerTemplate: LISTENER,
  listenerMetrics: METRICS,
};

/** Rows of the spec without the template, which {@link rowsFor} adds. */
export const SCALE_SET_ROWS: FieldRows = {
  ...COMMON_ROWS,
  runnerScaleSetLabels: labelsRow,
  vaultConfig: VAULT,
  autoscalingListener: METADATA,
  listenerServiceAccountMetadata: METADATA,
  listenerRoleMetadata: METADATA,
  listenerRoleBindingMetadata: METADATA,
  listenerConfigSecretMetadata: METADATA,
  ephemeralRunnerSetMetadata: METADATA,
  ephemeralRunnerMetadata: METADATA,
  ephemeralRunnerConfigSecretMetadata: METADATA,
};

/** Rows of the values of the chart gha-runner-scale-set. */
export const VALUES_ROWS: FieldRows = {
  ...COMMON_ROWS,
  scaleSetLabels: labelsRow,
  keyVault: VAULT,
  template: nested(POD_TEMPLATE_ROWS),
  // Converted after the template is known.
  containerMode: ignored,
  controllerServiceAccount: ignored,
  namespaceOverride: ignored,
  annotations: METADATA,
  labels: METADATA,
  resourceMeta: METADATA,
};

/**
 * Returns the rows of an object that the chart created. The chart's own service accounts are
 * deleted with its release, so they are not kept.
 */
function rowsFor({ annotations }: ArcObject): FieldRows {
  const [none, ofHooks] = CHART_ACCOUNTS.map((key) => annotations[key]);
  const serviceAccountName: FieldRow = (value, draft, field, key) => {
    if (value === none) return;
    if (value !== ofHooks) return serviceAccountRow(value, draft, field, key);
    draft.put('spec', 'automountServiceAccountToken', true);
    draft.needsDecision(
      field,
      `${quoted(value)} is of the chart, and goes with its release: make one of your own with the same rights, and name it in serviceAccountName`,
      'spec',
    );
  };
  const spec = nested({ ...POD_SPEC_ROWS, serviceAccountName }, sameField('spec'));
  return { ...SCALE_SET_ROWS, template: nested({ metadata: podMetadataRow, spec }) };
}

/**
 * Converts a scale set.
 * @param name - name of the scale set, which jobs use in `runs-on`
 */
export function convertScaleSet(object: ArcObject, draft: SetDraft, name: string): void {
  const { kind, fields } = object;
  const ofChart = kind === 'values';
  const at = ofChart ? '' : 'spec.';
  if (fields['githubConfigUrl'] === undefined || fields['githubConfigUrl'] === '')
    draft.addError(
      `${at}githubConfigUrl`,
      'is missing: the organization, repository or enterprise that the runners are for',
    );
  draft.put('template', 'labels', [name]);
  draft.put('template', 'demand', 'scaleSet');
  draft.put('template', 'scaleSet', { name, adopt: true });
  convertFields(fields, ofChart ? VALUES_ROWS : rowsFor(object), ofChart ? '' : 'spec', draft);
  bound(draft, `${at}maxRunners`);
  if (
    draft.containers.length > 0 &&
    Object.keys(draft.parts.runner).length === 0 &&
    draft.parts.template['image'] === undefined
  )
    draft.note(
      `${at}template.spec.containers`,
      "none is called runner: the worker's own image runs it",
      'template',
    );
  omitDefaultImage(draft);
  if (ofChart) addContainerMode(fields['containerMode'], draft);
}

function addContainerMode(mode: unknown, draft: SetDraft): void {
  const type = getPath(mode, 'type');
  if (mode === undefined || mode === null || type === undefined || type === '' || type === 'none')
    return;
  const field = 'containerMode';
  if (type === 'dind') {
    const [own] = draft.containers.filter(({ name }) => name === 'dind');
    if (own !== undefined) draft.containers.splice(draft.containers.indexOf(own), 1);
    return addDockerDaemon(draft, field, { container: {}, args: [], env: [], volumeMounts: [] });
  }
  if (type === 'kubernetes' || type === 'kubernetes-novolume') {
    const claim = getPath(mode, 'kubernetesModeWorkVolumeClaim') ?? {
      accessModes: ['ReadWriteOnce'],
      resources: { requests: { storage: '1Gi' } },
    };
    addJobPods(draft, field, type === 'kubernetes' ? claim : undefined);
    if (getPath(mode, 'kubernetesModeAdditionalRoleRules') !== undefined)
      draft.note(
        `${field}.kubernetesModeAdditionalRoleRules`,
        'left out: give these rules to the role of your service account',
        'spec',
      );
    return;
  }
  draft.addError(`${field}.type`, 'must be "dind", "kubernetes" or "kubernetes-novolume"');
}

function bound(draft: SetDraft, field: string): void {
  const { set } = draft.parts as { set: Json };
  const least = typeof set['minIdle'] === 'number' ? set['minIdle'] : 0;
  if (set['max'] === undefined) {
    draft.put('set', 'max', Math.max(USUAL_MAX, least));
    draft.note(
      field,
      `not set, which means no limit; choose one, up to ${MAX_RUNNERS}`,
      'set',
      'max',
    );
  } else if (typeof set['max'] === 'number' && set['max'] > MAX_RUNNERS) {
    draft.note(
      field,
      `was ${set['max']}: a set has at most ${MAX_RUNNERS} runners; make a larger fleet of several`,
      'set',
      'max',
    );
    draft.put('set', 'max', MAX_RUNNERS);
  }
}
