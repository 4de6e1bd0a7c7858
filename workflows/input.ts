/** Validation of the `runner` workflow's input: from what people write to a {@link RunnerSpec} with every default filled in. */
import { z } from 'zod';
import type { PodTemplate, Scope } from '../activities/ports.ts';
import type { OnEviction, RunnerInput } from './contract.ts';
import { parseDuration } from './duration.ts';
import { credentialName, duration, scopeErrors, scopeFields, toErrors, toScope, word, type Parsed, type InputError } from './inputFields.ts';
import { isReservedEnv, validatePodTemplate } from './podTemplate.ts';

/** A validated runner. All durations in ms. */
export interface RunnerSpec {
  readonly name: string;
  readonly scope: Scope;
  readonly credential: string;
  readonly runnerGroupId: number;
  readonly labels: readonly string[];
  readonly ephemeral: boolean;
  readonly registrationMode: 'jit' | 'token';
  readonly set: string | undefined;
  readonly onEviction: OnEviction;
  readonly pod: {
    readonly namespace?: string;
    readonly image?: string;
    readonly command?: string[];
    readonly args?: string[];
    readonly env?: Record<string, string>;
    readonly template?: PodTemplate;
  };
  readonly timeouts: {
    readonly provisioningMs: number;
    readonly podUnscheduledMs: number;
    readonly podPendingMs: number;
    readonly registrationMs: number;
    readonly idleMs: number | undefined;
    readonly jobMs: number;
  };
  /** Grace of the pod, in seconds: [drainTimeout +] signalTimeout + cleanupTimeout + 5 s of margin, at least 30. */
  readonly gracePeriodSeconds: number;
  readonly intervals: {
    readonly resyncMs: number;
    readonly busyRetryMs: number;
    readonly busyRecheckMs: number;
    readonly absentRecheckMs: number;
    readonly credentialsRetryMs: number;
    readonly onlineLookupMs: number;
    readonly removalSettleMs: number;
    readonly stopPatienceMs: number;
  };
}

/** Production defaults; a table test pins every one of them. */
export const RUNNER_DEFAULTS = {
  credential: 'default',
  runnerGroupId: 1,
  labels: ['self-hosted'],
  timeouts: { provisioning: '1h', podUnscheduled: '5m', podPending: '10m', registration: '10m', jobTimeout: '24h' },
  stop: { signalTimeout: '10s', cleanupTimeout: '5s' },
  intervals: {
    resync: '10m',
    busyRetry: '1m',
    busyRecheck: '10m',
    absentRecheck: '10s',
    credentialsRetry: '5m',
    onlineLookup: '2s',
    removalSettle: '2m',
    stopPatience: '30s',
  },
} as const;

/** A runner may only lower its job timeout; scopes with a higher cap are named in the worker's config. */
export const JOB_TIMEOUT_CAP = '24h';

// Kubernetes label values and GitHub label names both end at 256 at the most; control characters never make sense.
const label = z.string().regex(/^[^\s,\p{Cc}][^,\p{Cc}]{0,255}$/u, 'must be 1 to 256 characters without commas or control characters');
const strings = z.record(z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/, 'must be a name of an environment variable'), z.string());
const labels = z.record(z.string(), z.string());

const schema = z.strictObject({
  name: z.string().regex(/^[A-Za-z0-9][A-Za-z0-9_.-]*$/, 'must consist of letters, digits, ".", "_" and "-"').max(50, 'must be at most 50 characters: a suffix is appended and GitHub allows 64').optional(),
  ...scopeFields,
  credential: credentialName.optional(),
  runnerGroupId: z.number().int().positive().optional(),
  labels: z.array(label).min(1, 'must have at least one label').max(100, 'must have at most 100 labels').optional(),
  ephemeral: z.boolean().optional(),
  set: word('a set name').optional(),
  namespace: z.string().regex(/^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/, 'must be a Kubernetes namespace').optional(),
  image: z.string().min(1).max(500).optional(),
  command: z.array(z.string()).min(1).optional(),
  args: z.array(z.string()).optional(),
  env: strings.optional(),
  pod: z.strictObject({ metadata: z.strictObject({ labels: labels.optional(), annotations: labels.optional() }).optional(), spec: z.record(z.string(), z.unknown()).optional() }).optional(),
  timeouts: z
    .strictObject({ provisioning: duration, podUnscheduled: duration, podPending: duration, registration: duration, idle: duration, jobTimeout: duration })
    .partial()
    .optional(),
  stop: z.strictObject({ signalTimeout: duration, cleanupTimeout: duration }).partial().optional(),
  onEviction: z.enum(['fail', 'replace'], 'must be "fail" or "replace"').optional(),
  intervals: z
    .strictObject({ resync: duration, busyRetry: duration, busyRecheck: duration, absentRecheck: duration, credentialsRetry: duration, onlineLookup: duration, removalSettle: duration, stopPatience: duration })
    .partial()
    .optional(),
});

/**
 * Validates what people hand in. Every error is reported at once.
 * @param raw - the workflow's only argument
 * @param workflowId - names the runner when `name` is absent
 */
export function parseRunnerInput(raw: unknown, workflowId = ''): Parsed<RunnerSpec> {
  const parsed = schema.safeParse(raw);
  if (!parsed.success) return { ok: false, errors: parsed.error.issues.flatMap(toErrors) };
  const input = parsed.data as RunnerInput;
  const errors = [...scopeErrors(input), ...timeoutErrors(input), ...envErrors(input)];
  if (input.pod) errors.push(...validatePodTemplate(input.pod as PodTemplate).map((message) => ({ field: 'pod', message })));
  return errors.length > 0 ? { ok: false, errors } : { ok: true, spec: toSpec(input, workflowId) };
}

function timeoutErrors(input: RunnerInput): InputError[] {
  const asked = input.timeouts?.jobTimeout;
  if (asked === undefined || ms(asked) <= ms(JOB_TIMEOUT_CAP)) return [];
  return [{ field: 'timeouts.jobTimeout', message: `is over the cap of ${JOB_TIMEOUT_CAP}; a runner may only lower it` }];
}

function envErrors({ env = {} }: RunnerInput): InputError[] {
  return Object.keys(env).filter(isReservedEnv).map((name) => ({ field: `env.${name}`, message: 'is set by Holdfast; remove it' }));
}

const ms = (text: string): number => parseDuration(text) ?? Number.NaN;

function toSpec(input: RunnerInput, workflowId: string): RunnerSpec {
  const timeouts = { ...RUNNER_DEFAULTS.timeouts, ...input.timeouts };
  const stop = { ...RUNNER_DEFAULTS.stop, ...input.stop };
  const intervals = { ...RUNNER_DEFAULTS.intervals, ...input.intervals };
  const ephemeral = input.ephemeral ?? true;
  const { namespace, image, command, args, env, pod: template } = input;
  return {
    name: input.name ?? nameFromWorkflowId(workflowId),
    scope: toScope(input),
    credential: input.credential ?? RUNNER_DEFAULTS.credential,
    runnerGroupId: input.runnerGroupId ?? RUNNER_DEFAULTS.runnerGroupId,
    labels: input.labels ?? RUNNER_DEFAULTS.labels,
    ephemeral,
    // A JIT config is single-use by design: a runner that takes many jobs needs a registration token.
    registrationMode: ephemeral ? 'jit' : 'token',
    set: input.set,
    onEviction: input.onEviction ?? 'fail',
    pod: definedOnly({ namespace, image, command, args, env, template: template as PodTemplate | undefined }),
    timeouts: {
      provisioningMs: ms(timeouts.provisioning),
      podUnscheduledMs: ms(timeouts.podUnscheduled),
      podPendingMs: ms(timeouts.podPending),
      registrationMs: ms(timeouts.registration),
      idleMs: timeouts.idle === undefined ? undefined : ms(timeouts.idle),
      jobMs: ms(timeouts.jobTimeout),
    },
    gracePeriodSeconds: Math.max(30, Math.ceil((ms(stop.signalTimeout) + ms(stop.cleanupTimeout)) / 1_000) + 5),
    intervals: {
      resyncMs: ms(intervals.resync),
      busyRetryMs: ms(intervals.busyRetry),
      busyRecheckMs: ms(intervals.busyRecheck),
      absentRecheckMs: ms(intervals.absentRecheck),
      credentialsRetryMs: ms(intervals.credentialsRetry),
      onlineLookupMs: ms(intervals.onlineLookup),
      removalSettleMs: ms(intervals.removalSettle),
      stopPatienceMs: ms(intervals.stopPatience),
    },
  };
}

function nameFromWorkflowId(workflowId: string): string {
  const cleaned = workflowId.replace(/^runner-/, '').replace(/[^A-Za-z0-9_.-]+/g, '-').replace(/^[-_.]+/, '').slice(0, 50);
  return cleaned === '' ? 'runner' : cleaned;
}

function definedOnly<T extends Record<string, unknown>>(object: T): { [K in keyof T]: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined)) as never;
}
