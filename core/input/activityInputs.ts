/**
 * Schemas of the inputs of activities. Workflows write these inputs, and so can anyone who may
 * start a workflow, so each is parsed before it is used. The compute decides which pods are valid,
 * and the admission of a workflow validates the workflow's own input.
 */
import { z } from 'zod';
import { isCiId } from '../domain/ciId.ts';
import { isObject } from '../domain/isObject.ts';
import { isTime } from '../domain/isTime.ts';
import type { Location } from '../domain/location.ts';
import type { InputError } from '../contract/index.ts';
import { STOP_REASONS } from '../domain/pod.ts';
import { POD_CONDITIONS } from '../domain/podConditions.ts';
import { PRIORITY_KEYS } from '../domain/setPriority.ts';
import { credentialName, dnsLabel, identifier, parseInput, repositoryName } from './fields.ts';
import { rerunJob } from './rerun.ts';
import { storageKey, volumeClaim } from './runnerSchema.ts';

const MAX_ID = 1_000;
const MAX_TEXT = 10_000;

const text = z.string('must be a text').max(MAX_TEXT, `must be at most ${MAX_TEXT} characters`);
const workflowId = z
  .string('must be the ID of a workflow')
  .min(1, 'must not be empty')
  .max(MAX_ID, `must be at most ${MAX_ID} characters`);
/** An ID in a name, a label or a path. */
const id = z
  .string('must be an ID')
  .regex(/^[A-Za-z0-9_-]{1,100}$/, 'must be an ID: letters, digits, "_" and "-", at most 100');
const ms = z.number('must be a number of milliseconds').min(0, 'must not be negative');
const time = z.custom<number>(isTime, 'must be a time in ms since the epoch');
const whole = z.number('must be a whole number').int('must be a whole number');
const anything = z.custom<object>(isObject, 'must be an object');
const namespace = dnsLabel('a Kubernetes namespace');

const identity = z.object({ workflowId, firstRunId: id, attempt: whole.min(1) });
const location = z.object(
  {
    compute: z.enum(['kubernetes', 'process']),
    cluster: id,
    installation: z.string().regex(/^[A-Za-z0-9._-]{1,63}$/, 'must be the name of an installation'),
    namespace: namespace.exactOptional(),
  },
  'is missing: where the pods are, as the admission of the runner answers it',
);
const podName = dnsLabel('the name of a pod');
const podRef = z.object({
  name: podName,
  uid: id,
  namespace: namespace.exactOptional(),
});
const scope = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('organization'), name: identifier('an organization') }),
  z.object({ kind: z.literal('enterprise'), name: identifier('an enterprise') }),
  z.object({ kind: z.literal('repository'), name: repositoryName() }),
]);
const ciId = z.string('must be a string, such as "42"').refine(isCiId, 'must be an ID');
const runnerName = z
  .string('must be the name of a runner')
  .regex(/^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$/, 'must be the name of a runner');
const registration = z.object({ name: runnerName, id: ciId.exactOptional() });
const lostRunner = { scope, credential: credentialName, runnerName };
const lostJob = {
  ...lostRunner,
  job: rerunJob,
  perRun: whole.min(1),
  recorded: z.boolean(),
  stoppedAtMs: time.exactOptional(),
  lostAtMs: time,
  forceCancelAfterMs: ms.exactOptional(),
  forceCancelled: z.literal(true).exactOptional(),
};
const labels = z.array(z.string().max(256)).max(200);
const setName = identifier('a set name');
const claimedRerun = { ...lostJob, perDay: whole.min(1), set: setName.exactOptional() };
const scaleSetName = identifier('the name of a scale set').max(64);
const group = z.union([
  z.literal('default'),
  z.object({ id: ciId }),
  z.object({ name: z.string().min(1).max(200) }),
]);
/** Schema of the input of the workflow `scaleSetListener`. */
export const listenerSchema = z.object({
  set: setName,
  scope,
  credential: credentialName,
  group,
  labels: z.array(z.string().min(1).max(256)).max(100),
  name: scaleSetName,
  adopt: z.literal(true).exactOptional(),
});
const sessionCursor = z.object({
  sessionId: z.string().regex(/^[A-Za-z0-9_.-]{1,200}$/, 'must be the ID of a session'),
  openedAt: time,
  lastMessageId: whole.min(0),
});
const setNotification = z.object({
  set: setName,
  event: z.object({ kind: z.enum(['online', 'busy', 'ended']), workflowId, runnerName }),
  mayWait: z.literal(true).exactOptional(),
});
const claims = z.array(volumeClaim).max(20, 'must have at most 20 claims');

const podRequest = z.object({
  identity,
  namespace: namespace.exactOptional(),
  image: text.exactOptional(),
  command: z.array(text).exactOptional(),
  args: z.array(text.max(1_000_000)).exactOptional(),
  env: z.record(z.string(), z.string()).exactOptional(),
  template: anything.exactOptional(),
  proxy: anything.exactOptional(),
  ca: anything.exactOptional(),
  labels: z.record(z.string(), z.string()),
  terminationGracePeriodSeconds: z.number().min(0),
  supervision: anything.exactOptional(),
  volumeClaims: claims.exactOptional(),
  storage: z
    .object({ path: storageKey, sharedDirSources: z.array(storageKey).max(100), timeoutMs: ms })
    .exactOptional(),
  jobTimeoutCapMs: ms.exactOptional(),
});

const located = { location };
const claimsInput = {
  ...located,
  identity,
  namespace: namespace.exactOptional(),
  claims,
};
const admission = z.object({
  workflowId,
  firstRunId: id,
  continued: z.object({ location }).exactOptional(),
});

/** Schemas of the inputs by activity. Fields that no activity reads are ignored. */
export const ACTIVITY_INPUTS = {
  admitRunner: admission,
  admitJob: z.object({ workflowId, runId: id }),
  admitDeregistration: anything,
  admitSet: anything,
  admitSetCommand: anything,
  admitRerun: anything,
  provision: z.object({
    ...located,
    runnerName,
    ciServer: z
      .object({
        credential: credentialName,
        registration: z.object({
          scope,
          labels,
          group,
          ephemeral: z.boolean(),
          mode: z.enum(['jit', 'token']),
          scaleSet: scaleSetName.exactOptional(),
        }),
      })
      .exactOptional(),
    pod: podRequest,
    credentialsRetryMs: ms,
    completeWithinMs: ms,
  }),
  findProvisioned: z.object({
    ...located,
    identity,
    namespace: namespace.exactOptional(),
    hasRegistration: z.boolean(),
  }),
  awaitPod: z.object({
    ...located,
    pod: podRef,
    until: z.enum(POD_CONDITIONS),
    notify: setNotification.exactOptional(),
  }),
  getPod: z.object({ ...located, pod: podRef }),
  awaitRunnerOnline: z.object({
    scope,
    credential: credentialName,
    runner: registration,
    intervalMs: ms,
    credentialsRetryMs: ms,
  }),
  removeRegistration: z.object({
    scope,
    credential: credentialName,
    runner: registration,
    inScaleSet: z.literal(true).exactOptional(),
    onBusy: z.enum(['retry', 'return']),
    busyRetryMs: ms.exactOptional(),
    maxBusyRetryMs: ms.exactOptional(),
    credentialsRetryMs: ms,
  }),
  findLostJob: z.object(lostRunner),
  awaitRerun: z.object(lostJob),
  forceCancelRun: z.object(claimedRerun),
  requestRerun: z.object(claimedRerun),
  tearDown: z.object({
    ...located,
    identity,
    namespace: namespace.exactOptional(),
    pod: z
      .object({
        ref: podRef.exactOptional(),
        gracePeriodSeconds: z.number().min(0).exactOptional(),
        reason: text.exactOptional(),
        stopReason: z.enum(STOP_REASONS).exactOptional(),
      })
      .exactOptional(),
    notify: setNotification.exactOptional(),
    claims: claims.exactOptional(),
  }),
  fenceClaims: z.object({
    ...claimsInput,
    writer: z.object({
      podUid: id,
      node: z.string().regex(/^(?!\.+$)[A-Za-z0-9_.-]{1,253}$/, 'must be the name of a node'),
    }),
  }),
  awaitClaims: z.object(claimsInput),
  sweepPlace: z.object({ taskQueue: text }),
  evaluateSchedules: z.object({
    schedules: z
      .array(z.object({ cron: text, timeZone: text, durationMs: ms }))
      .max(1_000, 'must have at most 1000 schedules'),
  }),
  startRunners: z.object({
    set: setName,
    templateHash: id,
    ephemeral: z.boolean(),
    template: anything,
    priority: z.enum(Object.keys(PRIORITY_KEYS)),
    runners: z.array(
      z.object({
        workflowId,
        slot: whole.min(0).exactOptional(),
        traceparent: text.exactOptional(),
      }),
    ),
  }),
  drainRunners: z.object({ runners: z.array(z.object({ workflowId, reason: text })) }),
  listRunners: z.object({
    set: setName,
    known: z.array(text).exactOptional(),
    page: text.exactOptional(),
  }),
  findEndedRunners: z.object({ workflowIds: z.array(workflowId) }),
  notifySet: setNotification,
  checkQueuedJobs: z.object({
    set: setName,
    taskQueue: text,
    scope,
    credential: credentialName,
    labels,
    requestedAt: time,
    maxAgeMs: ms,
    overdue: z.array(z.object({ key: text, repository: repositoryName() })),
    reroutedHere: z.array(text),
    reroutedTo: z.array(workflowId),
  }),
  admitListener: anything,
  listen: z.object({ listener: listenerSchema, cursor: sessionCursor.exactOptional() }),
  closeScaleSet: z.object({
    listener: listenerSchema,
    cursor: sessionCursor.exactOptional(),
    remove: z.boolean(),
  }),
  startListener: listenerSchema,
  observeCapacity: z.object({
    set: setName,
    namespace: namespace.exactOptional(),
    runners: z.array(workflowId).max(1_000),
  }),
  rerouteJobs: z.object({
    set: setName,
    routing: anything,
    jobs: z.array(z.object({ key: text, repository: repositoryName(), since: time })),
    draining: z.boolean(),
    forwardedEvents: z.array(z.object({ to: workflowId, event: anything })),
  }),
} as const satisfies Record<string, z.ZodType>;

/** Name of an activity that has an input. */
export type CheckedActivity = keyof typeof ACTIVITY_INPUTS;

/** Whether the activity has an input. */
export function isCheckedActivity(name: string): name is CheckedActivity {
  return Object.hasOwn(ACTIVITY_INPUTS, name);
}

/** Fields of a checked input that contain the workflow ID of a runner. */
interface RunnerNames {
  readonly identity?: { readonly workflowId: string };
  readonly pod?: { readonly identity?: { readonly workflowId: string } };
  readonly notify?: { readonly event: { readonly workflowId: string } };
}

/** Returns the fields of a checked input that contain a runner's workflow ID, with these IDs. */
export function workflowIdsIn(
  activity: CheckedActivity,
  input: unknown,
): [field: string, workflowId: string][] {
  const { identity: own, pod, notify } = input as RunnerNames;
  const named: [string, string | undefined][] = [
    ['identity.workflowId', own?.workflowId],
    ['pod.identity.workflowId', pod?.identity?.workflowId],
    ['notify.event.workflowId', notify?.event.workflowId],
  ];
  if (activity === 'admitRunner' || activity === 'admitJob')
    named.push(['workflowId', (input as { readonly workflowId: string }).workflowId]);
  if (activity === 'notifySet')
    named.push(['event.workflowId', (input as { event: { workflowId: string } }).event.workflowId]);
  return named.filter((entry): entry is [string, string] => entry[1] !== undefined);
}

/** Returns all errors of an activity's input. The list is empty if it is valid. */
export function activityInputErrors(activity: CheckedActivity, input: unknown): InputError[] {
  const parsed = parseInput(ACTIVITY_INPUTS[activity] as z.ZodType, input);
  return parsed.ok ? namespaceErrors(input) : parsed.errors;
}

/** Checks that all objects of a runner are in the namespace of its location. */
function namespaceErrors(input: unknown): InputError[] {
  const {
    location: place,
    namespace: named,
    pod,
  } = input as {
    readonly location?: Location;
    readonly namespace?: string;
    readonly pod?: { readonly namespace?: string; readonly ref?: { readonly namespace?: string } };
  };
  if (place?.namespace === undefined) return [];
  const fields = [
    ['namespace', named],
    ['pod.namespace', pod?.namespace],
    ['pod.ref.namespace', pod?.ref?.namespace],
  ] as const;
  return fields
    .filter(([, value]) => value !== undefined && value !== place.namespace)
    .map(([field]) => ({
      code: 'denied',
      field,
      message: `must be "${place.namespace}", as in location`,
    }));
}
