/**
 * Plan of the migration from ARC: the steps in order, with the names of the given objects. Pure.
 */
import { stringify } from 'yaml';
import type { Fields, SkippedObject } from './arcObjects.ts';
import type { MigratedSet } from './convertArc.ts';
import type { SetFormat } from './setFormats.ts';
import {
  escapeControlCharacters,
  stripControlCharacters,
  truncate,
} from '../../core/domain/displayText.ts';
import { isObject } from '../../core/domain/isObject.ts';

/**
 * Returns a name for a command that a user copies to a shell. Only valid Kubernetes names are used
 * in it.
 */
const inCommand = (name: string | undefined, otherwise: string): string =>
  name !== undefined && /^[a-z0-9][a-z0-9.-]{0,252}$/.test(name) ? name : otherwise;

/** File of the sets, and its format. */
export interface WrittenSets {
  readonly file: string;
  readonly format: SetFormat;
}

/** Returns the steps of the migration, one paragraph each. */
export function migrationPlan(
  sets: readonly MigratedSet[],
  leftOut: readonly SkippedObject[],
  written: WrittenSets,
): string[] {
  const steps = [
    decide(sets),
    prepare(sets),
    webhook(sets),
    sideBySide(sets, written),
    ...labels(sets),
    verify(sets),
    drain(sets),
    remove(sets),
  ];
  return [
    'The way over from actions-runner-controller (ARC). Nothing has been applied or changed.',
    ...unique(leftOut.map(({ reason }) => reason)).map(
      (reason) =>
        `Left out (${reason}): ${some(leftOut.filter((each) => each.reason === reason).map(({ label }) => label))}`,
    ),
    ...steps.filter((step) => step !== undefined).map((step, index) => `${index + 1}. ${step}`),
  ];
}

function decide(sets: readonly MigratedSet[]): string {
  const open = sets
    .filter(({ notes }) => notes.some((note) => note.needsDecision))
    .map(({ input }) => input.name);
  const read =
    'Read the comments: each is a field of ARC that means something else here, or nothing.';
  return open.length === 0
    ? read
    : `${read} ${some(open)} ${open.length === 1 ? 'is' : 'are'} written "paused: true": resolve each note that begins with DECIDE, then remove that line.`;
}

function prepare(sets: readonly MigratedSet[]): string {
  const credentials = unique(
    sets.flatMap(({ input: { template } }) =>
      template.credential === undefined ? [] : [template.credential],
    ),
  );
  const pods = sets.map(({ input: { template } }) => template.pod?.spec ?? {});
  const objects = unique(pods.flatMap((spec) => namedObjects(spec)));
  const policy = unique(sets.flatMap((set) => set.policy));
  return [
    'Configure a worker of Holdfast for what the sets need ("holdfast doctor" checks the rest).',
    credentials.length === 0
      ? 'Credential: "default".'
      : `Credentials (HOLDFAST_CREDENTIALS_FILE): ${some(credentials)}; where one is not named: "default".`,
    ...(objects.length === 0
      ? []
      : [`In the namespace of its pods, which need not be ARC's: ${some(objects)}.`]),
    ...(policy.length === 0 ? [] : [policyStep(sets, policy)]),
    podSecurityStep(sets),
    "Jobs that use sudo need securityContext: {allowPrivilegeEscalation: true, capabilities: {drop: []}} of the container called runner: ARC's pods allow it by default.",
  ].join(' ');
}

/** Returns the fields that the pod policy must allow, and their minimum values as YAML. */
function policyStep(sets: readonly MigratedSet[], fields: readonly string[]): string {
  const merged = new Map<string, unknown>();
  for (const [field, value] of sets.flatMap(({ podPolicy }) => Object.entries(podPolicy))) {
    const before = merged.get(field);
    merged.set(
      field,
      Array.isArray(before) && Array.isArray(value)
        ? [...new Set([...(before as unknown[]), ...(value as unknown[])])]
        : value,
    );
  }
  const yaml = stringify(Object.fromEntries(merged), { collectionStyle: 'flow', lineWidth: 0 });
  const text = escapeControlCharacters(yaml.trim());
  return `Its pod policy (HOLDFAST_POD_POLICY_FILE; podPolicy of the chart) has to allow more by: ${fields.join(', ')}. As YAML: ${text}.`;
}

/**
 * Returns the step about Pod Security. A namespace enforces one level, so the plan lists the level
 * of each set.
 */
function podSecurityStep(sets: readonly MigratedSet[]): string {
  const levels = (['restricted', 'baseline', 'privileged'] as const).flatMap((level) => {
    const those = sets.filter(({ security }) => security.level === level);
    if (those.length === 0) return [];
    const reasons = unique(those.flatMap(({ security }) => security.reasons)).map(shownReason);
    const because = level === 'privileged' ? 'for' : 'restricted would need';
    return [
      `${level} for ${some(those.map(nameOf))}${reasons.length === 0 ? '' : ` (${because} ${some(reasons)})`}`,
    ];
  });
  return `Pod Security levels that the namespace of the pods has to allow: ${levels.join('; ')}. Its label is set by: kubectl label namespace NAMESPACE pod-security.kubernetes.io/enforce=LEVEL. Sets with different levels are better in namespaces of their own.`;
}

/**
 * Returns a reason as safe text. It contains names of containers and volumes, which are arbitrary.
 */
const shownReason = (reason: string): string => truncate(stripControlCharacters(reason), 100);

function webhook(sets: readonly MigratedSet[]): string | undefined {
  const byEvents = sets.filter(
    ({ input }) => input.max !== undefined && input.template.demand !== 'scaleSet',
  );
  if (byEvents.length === 0) return undefined;
  return 'At GitHub add a webhook for Holdfast, event Workflow jobs (docs/runner-sets.md), in addition to one that ARC may have. Without it a set finds a job only by its check every queueCheck (5m).';
}

/** Commands that test and then apply each format. */
const APPLY: Readonly<Record<SetFormat, (file: string) => string>> = {
  sets: (file) => `"holdfast set apply -f ${file} --dry-run", then without --dry-run`,
  runnerset: (file) =>
    `"kubectl apply --server-side --dry-run=server -f ${file} --namespace NAMESPACE" with the namespace of HOLDFAST_RUNNER_SET_RESOURCE_NAMESPACE, then without --dry-run`,
  chart: (file) =>
    `"helm upgrade RELEASE CHART --reuse-values --values ${file} --dry-run=server", then without --dry-run; the list replaces the release's earlier sets`,
};

function sideBySide(sets: readonly MigratedSet[], { file, format }: WrittenSets): string {
  const ofStatic = sets.some(({ input }) => input.template.ephemeral === false)
    ? ' A static runner keeps its registration until it is drained.'
    : '';
  return `Run both in parallel: ${APPLY[format](file)}. They may share cluster and namespace: neither changes the other's objects, and their runners have different names.${ofStatic}`;
}

function labels(sets: readonly MigratedSet[]): string[] {
  const [scaleSets, legacy] = [sets.filter(isScaleSet), sets.filter((set) => !isScaleSet(set))];
  return [
    ...(legacy.length === 0
      ? []
      : [
          `Labels of ${some(legacy.map(nameOf))} may be shared with ARC's runners: GitHub gives a job to any idle runner that has its labels. Each queued job then asks both for a runner, and one of the two is left over: lower ARC's maximum as you raise ours.`,
        ]),
    ...(scaleSets.length === 0
      ? []
      : [
          `${some(scaleSets.map(nameOf))} ${scaleSets.length === 1 ? 'takes' : 'take'} over ARC's scale sets by name (template.scaleSet), so that jobs need no change. GitHub lets one system read a scale set at a time: as long as ARC's listener does, "holdfast set get" shows that it has the session, and its runners get the jobs. The take-over follows by itself when the listener is gone (step Remove ARC): ARC then deletes the scale set at GitHub, and Holdfast creates it again under the same name. For a trial before, give the set another template.scaleSet.name and other labels, and let a workflow ask for these in runs-on.`,
        ]),
  ];
}

function verify(sets: readonly MigratedSet[]): string {
  return `Look: "holdfast set get ${sets[0]?.input.name ?? 'NAME'}" shows runners, jobs, and why none is started; let a job of each set run to its end.`;
}

function drain(sets: readonly MigratedSet[]): string {
  const remaining = [
    ...(sets.some(isScaleSet) ? ['kubectl get ephemeralrunners -A'] : []),
    ...(sets.every(isScaleSet) ? [] : ['kubectl get pods -A -l actions-runner']),
  ];
  return `Drain ARC: ${unique(sets.flatMap(drainCommands)).join('; ')}. Busy runners finish their job. Wait until none is left: ${remaining.join('; ')}.`;
}

function drainCommands({ from, autoscaler }: MigratedSet): string[] {
  const at = from.namespace === undefined ? '' : `-n ${inCommand(from.namespace, 'NAMESPACE')} `;
  const name = inCommand(from.name, 'NAME');
  const zero = (kind: string, spec: string): string =>
    `kubectl ${at}patch ${kind} ${name} --type merge -p '{"spec":${spec}}'`;
  if (from.kind === 'values')
    return [
      'helm upgrade RELEASE oci://ghcr.io/actions/actions-runner-controller-charts/gha-runner-scale-set --reuse-values --set minRunners=0 --set maxRunners=0',
    ];
  if (from.kind === 'AutoscalingRunnerSet')
    return [zero('autoscalingrunnerset', '{"minRunners":0,"maxRunners":0}')];
  if (from.kind === 'Runner') return [`kubectl ${at}delete runner ${name}`];
  // An autoscaler would scale it up again.
  return [
    ...(autoscaler === undefined
      ? []
      : [`kubectl ${at}delete horizontalrunnerautoscaler ${inCommand(autoscaler.name, 'NAME')}`]),
    zero(from.kind.toLowerCase(), '{"replicas":0}'),
  ];
}

function remove(sets: readonly MigratedSet[]): string {
  const first = sets.some(isScaleSet)
    ? 'uninstall the releases of its scale sets before that of its controller (which removes their finalizers)'
    : 'delete its objects before its controller (which removes their finalizers)';
  return `Remove ARC: ${first}, then its CRDs, Secrets and webhook. GitHub removes the remaining offline runners within a day (ephemeral) or two weeks; "holdfast sweep --dry-run" shows what Holdfast itself has left behind.`;
}

const isScaleSet = ({ from }: MigratedSet): boolean =>
  from.kind === 'values' || from.kind === 'AutoscalingRunnerSet';
const nameOf = ({ input }: MigratedSet): string => input.name;
const unique = (texts: readonly string[]): string[] => [...new Set(texts)];
/** Returns a list of at most 20 names. */
const some = (names: readonly string[]): string =>
  names.length > 20
    ? `${names.slice(0, 20).join('; ')} and ${names.length - 20} more`
    : names.join('; ');

/** Returns the Secrets and ConfigMaps that a pod refers to. */
function namedObjects(spec: unknown): string[] {
  const found: string[] = [];
  walk(spec, (fields) => {
    for (const [key, kind, name] of [
      ['secretKeyRef', 'Secret', 'name'],
      ['secretRef', 'Secret', 'name'],
      ['secret', 'Secret', 'secretName'],
      ['configMapKeyRef', 'ConfigMap', 'name'],
      ['configMapRef', 'ConfigMap', 'name'],
      ['configMap', 'ConfigMap', 'name'],
    ] as const) {
      const reference = fields[key];
      if (isObject(reference) && typeof reference[name] === 'string')
        found.push(`${kind} ${reference[name]}`);
    }
  });
  return found;
}

function walk(value: unknown, visit: (fields: Fields) => void): void {
  if (Array.isArray(value)) for (const item of value) walk(item, visit);
  else if (isObject(value)) {
    visit(value);
    for (const inner of Object.values(value)) walk(inner, visit);
  }
}
