/** Validation of the `runner` workflow's input: from what people write to a {@link ParsedRunner} with every default filled in. */
import type { OnEviction, RunnerInput } from '../contract/index.ts';
import { parseDuration } from '../domain/duration.ts';
import { toErrors, toScope, type Parsed } from './fields.ts';
import { runnerErrors, runnerWarnings } from './runnerChecks.ts';
import { JOB_TIMEOUT_CAP, RUNNER_DEFAULTS } from './runnerDefaults.ts';
import { runnerSchema } from './runnerSchema.ts';
import { timeoutsFor, type ScopeTimeouts, type TimeoutPolicy } from './timeoutPolicy.ts';
import type { PodTemplate, Supervision, VolumeClaimRequest } from '../domain/pod.ts';
import type { Scope } from '../domain/ciServer.ts';

/** The heartbeat timeout of the activities whose answers are held back is 15 s, and counts on meanwhile. */
const LONGEST_HELD_BACK_MS = 10_000;

/** An admitted runner. */
export interface RunnerSpec extends ParsedRunner {
  /** What tells its runners' names from others', so that each name is known before anything is registered. */
  readonly nameHash: string;
}

/** A validated runner. All durations in ms. */
export interface ParsedRunner {
  readonly name: string;
  /** Absent: a plain command that no CI server knows. */
  readonly scope?: Scope;
  readonly credential: string;
  readonly runnerGroupId: number;
  readonly labels: readonly string[];
  readonly ephemeral: boolean;
  readonly registrationMode: 'jit' | 'token';
  readonly set?: string;
  readonly onEviction: OnEviction;
  readonly pod: {
    readonly namespace?: string;
    readonly image?: string;
    readonly command?: string[];
    readonly args?: string[];
    readonly env?: Record<string, string>;
    readonly template?: PodTemplate;
    readonly supervision: Supervision;
    readonly volumeClaims: readonly VolumeClaimRequest[];
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
    readonly idleConfirmMs: number;
    readonly stopPatienceMs: number;
    readonly heldBackMs: number;
  };
  /** What will not do what its author may expect: shown, never a reason to refuse. */
  readonly warnings: readonly string[];
}

/** Between the end of the supervisor's budget and the kubelet's SIGKILL. */
const MARGIN_SECONDS = 5;
const LEAST_GRACE_SECONDS = 30;

/**
 * Validates what people hand in. Every error is reported at once.
 * @param raw - the workflow's only argument
 * @param workflowId - names the runner when `name` is absent
 * @param policy - timeouts that the worker's config sets for scopes
 */
export function parseRunnerInput(raw: unknown, workflowId = '', policy: TimeoutPolicy = {}): Parsed<ParsedRunner> {
  const parsed = runnerSchema.safeParse(raw);
  if (!parsed.success) return { ok: false, errors: parsed.error.issues.flatMap(toErrors) };
  const input = parsed.data as RunnerInput;
  const byScope = timeoutsFor(policy, input.ciServer === 'none' ? undefined : toScope(input));
  const errors = runnerErrors(input, byScope.jobTimeoutCap ?? JOB_TIMEOUT_CAP);
  return errors.length > 0 ? { ok: false, errors } : { ok: true, spec: toSpec(input, workflowId, byScope) };
}

const ms = (text: string): number => parseDuration(text) ?? Number.NaN;

function toSpec(input: RunnerInput, workflowId: string, byScope: ScopeTimeouts): ParsedRunner {
  const { signalTimeout, cleanupTimeout, jobTimeoutCap = JOB_TIMEOUT_CAP, ...defaults } = byScope;
  const timeouts = { ...RUNNER_DEFAULTS.timeouts, ...defaults, ...input.timeouts };
  const stop = { ...RUNNER_DEFAULTS.stop, ...definedOnly({ signalTimeout, cleanupTimeout }), ...input.stop };
  const intervals = { ...RUNNER_DEFAULTS.intervals, ...input.intervals };
  const ephemeral = input.ephemeral ?? true;
  const scope = input.ciServer === 'none' ? undefined : toScope(input);
  const { namespace, image, command, args, env, pod: template, set } = input;
  const jobMs = Math.min(ms(timeouts.jobTimeout), ms(jobTimeoutCap));
  const graceMs = ms(stop.drainTimeout ?? '0s') + ms(stop.signalTimeout) + ms(stop.cleanupTimeout);
  return {
    name: input.name ?? nameFromWorkflowId(workflowId),
    credential: input.credential ?? RUNNER_DEFAULTS.credential,
    runnerGroupId: input.runnerGroupId ?? RUNNER_DEFAULTS.runnerGroupId,
    labels: input.labels ?? RUNNER_DEFAULTS.labels,
    ephemeral,
    // A JIT config is single-use by design: a runner that takes many jobs needs a registration token.
    registrationMode: ephemeral ? 'jit' : 'token',
    ...definedOnly({ scope, set }),
    onEviction: input.onEviction ?? 'fail',
    pod: {
      ...definedOnly({ namespace, image, command, args, env, template: template as PodTemplate | undefined }),
      supervision: {
        ...definedOnly({ mode: input.supervisor, signals: stop.signals, cleanupCommand: stop.cleanupCommand }),
        watches: scope === undefined ? 'command' : 'github',
        oneJob: ephemeral,
        onTerm: input.onTerm ?? 'stop',
        drainTimeoutMs: ms(stop.drainTimeout ?? '0s'),
        signalTimeoutMs: ms(stop.signalTimeout),
        cleanupTimeoutMs: ms(stop.cleanupTimeout),
        // A runner's job is timed by the workflow: the container also runs while there is none.
        ...(scope === undefined ? { timeoutMs: jobMs } : {}),
        startupMs: ms(timeouts.registration),
      },
      volumeClaims: input.volumeClaims ?? [],
    },
    timeouts: {
      provisioningMs: ms(timeouts.provisioning),
      podUnscheduledMs: ms(timeouts.podUnscheduled),
      podPendingMs: ms(timeouts.podPending),
      registrationMs: ms(timeouts.registration),
      idleMs: timeouts.idle === undefined ? undefined : ms(timeouts.idle),
      jobMs,
    },
    gracePeriodSeconds: Math.max(LEAST_GRACE_SECONDS, Math.ceil(graceMs / 1_000) + MARGIN_SECONDS),
    intervals: {
      resyncMs: ms(intervals.resync),
      busyRetryMs: ms(intervals.busyRetry),
      busyRecheckMs: ms(intervals.busyRecheck),
      absentRecheckMs: ms(intervals.absentRecheck),
      credentialsRetryMs: ms(intervals.credentialsRetry),
      onlineLookupMs: ms(intervals.onlineLookup),
      removalSettleMs: ms(intervals.removalSettle),
      idleConfirmMs: ms(intervals.idleConfirm),
      stopPatienceMs: ms(intervals.stopPatience),
      heldBackMs: Math.min(ms(intervals.heldBack), LONGEST_HELD_BACK_MS),
    },
    warnings: runnerWarnings(input, graceMs),
  };
}

function nameFromWorkflowId(workflowId: string): string {
  const cleaned = workflowId.replace(/^runner-/, '').replace(/[^A-Za-z0-9_.-]+/g, '-').replace(/^[-_.]+/, '').slice(0, 50);
  return cleaned === '' ? 'runner' : cleaned;
}

function definedOnly<T extends Record<string, unknown>>(object: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined)) as never;
}
