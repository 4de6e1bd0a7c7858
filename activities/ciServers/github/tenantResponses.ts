/** Responses of GitHub's Actions service, the server of scale sets. */
import { z } from 'zod';
import type {
  ScaleSetEvent,
  ScaleSetMessage,
  ScaleSetStatistics,
} from '../../../core/domain/scaleSet.ts';
import type { CiServerErrorKind } from '../../ports/ciServerError.ts';
import { classifyResponse, type Classification } from './classify.ts';

const count = z.number().int().min(0).default(0);
const id = z.number().int();

/** Schema of the connection to the Actions service: its URL, and a JWT for an hour. */
export const connectionAnswer = z.object({ url: z.url(), token: z.string().min(1) });

/** Schema of the claims of that JWT, which is not verified: only its issuer can. */
export const tokenClaims = z.object({ exp: z.number() });

/** Schema of a scale set's numbers. */
export const statisticsAnswer = z
  .object({
    totalAvailableJobs: count,
    totalAssignedJobs: count,
    totalRunningJobs: count,
    totalRegisteredRunners: count,
    totalBusyRunners: count,
    totalIdleRunners: count,
  })
  .transform((total): ScaleSetStatistics => ({
    available: total.totalAvailableJobs,
    assigned: total.totalAssignedJobs,
    running: total.totalRunningJobs,
    registeredRunners: total.totalRegisteredRunners,
    busyRunners: total.totalBusyRunners,
    idleRunners: total.totalIdleRunners,
  }));

/** Schema of a scale set. */
export const scaleSetAnswer = z.object({
  id,
  name: z.string(),
  labels: z.array(z.object({ name: z.string() })).nullish(),
});
/** A scale set as GitHub describes it. */
export type ScaleSetAnswer = z.output<typeof scaleSetAnswer>;

/** Schema of a list of scale sets. */
export const scaleSetListAnswer = z.object({ value: z.array(scaleSetAnswer) });

/** Schema of a session. During an outage the URL of its queue was empty. */
export const sessionAnswer = z.object({
  sessionId: z.string().min(1),
  messageQueueUrl: z.url(),
  messageQueueAccessToken: z.string().min(1),
  statistics: statisticsAnswer,
});
/** A session as GitHub describes it, with its token. */
export type SessionAnswer = z.output<typeof sessionAnswer>;

/** Schema of the acquired jobs. */
export const acquiredAnswer = z.object({ value: z.array(id) });

/** Schema of a JIT configuration. */
export const tenantJitAnswer = z.object({
  runner: z.object({ id, name: z.string() }),
  encodedJITConfig: z.string().min(1),
});

/** Schema of a list of runners. */
export const agentListAnswer = z.object({ value: z.array(z.object({ id, name: z.string() })) });

const entry = z.object({ messageType: z.string(), runnerRequestId: id });
const available = entry.transform(({ runnerRequestId }): ScaleSetEvent => ({
  kind: 'available',
  requestId: runnerRequestId,
}));
const assigned = entry.transform(({ runnerRequestId }): ScaleSetEvent => ({
  kind: 'assigned',
  requestId: runnerRequestId,
}));
const started = entry
  .extend({ runnerName: z.string().min(1) })
  .transform(({ runnerRequestId, runnerName }): ScaleSetEvent => ({
    kind: 'started',
    requestId: runnerRequestId,
    runnerName,
  }));
const completed = entry
  .extend({ runnerName: z.string().nullish(), result: z.string().default('') })
  .transform(({ runnerRequestId, runnerName, result }): ScaleSetEvent => ({
    kind: 'completed',
    requestId: runnerRequestId,
    result,
    // A job that was cancelled in the queue never had a runner.
    ...(runnerName ? { runnerName } : {}),
  }));

const EVENTS: Readonly<Record<string, z.ZodType<ScaleSetEvent>>> = {
  JobAvailable: available,
  JobAssigned: assigned,
  JobStarted: started,
  JobCompleted: completed,
};

/** Converts one entry of a message. Entries of unknown types are skipped, as GitHub's client does. */
function eventsOf(raw: unknown): ScaleSetEvent[] {
  const { success, data } = z.object({ messageType: z.string() }).safeParse(raw);
  const schema = success ? EVENTS[data.messageType] : undefined;
  return schema === undefined ? [] : [schema.parse(raw)];
}

/** Schema of a message. Its `body` is JSON in a string. */
export const messageAnswer = z
  .object({
    messageId: id,
    messageType: z.literal('RunnerScaleSetJobMessages'),
    body: z.string().default(''),
    statistics: statisticsAnswer,
  })
  .transform(({ messageId, body, statistics }): ScaleSetMessage => ({
    id: messageId,
    statistics,
    events: body === '' ? [] : z.array(z.unknown()).parse(JSON.parse(body)).flatMap(eventsOf),
  }));

/**
 * Exceptions of the Actions service, by a part of their type name. The namespaces before it differ.
 */
const EXCEPTIONS: readonly (readonly [RegExp, CiServerErrorKind | 'not_found'])[] = [
  [/AgentExistsException/, 'name_taken'],
  [/ScaleSetExistsException/, 'name_taken'],
  [/JobStillRunningException/, 'busy'],
  [/SessionConflictException/, 'conflict'],
  [/AgentNotFoundException/, 'not_found'],
];

/** A response of the Actions service that is not a success. */
export interface TenantErrorResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** Parsed JSON, or the text. */
  readonly body: unknown;
}

/** Classifies a response by the type of its exception, otherwise by status and message. */
export function classifyTenantResponse(answer: TenantErrorResponse, nowMs: number): Classification {
  const general = classifyResponse({ call: 'scale_sets', ...answer }, nowMs);
  if (general.kind === 'rate_limited' || general.kind === 'unavailable') {
    // A conflict is not an outage, although its status alone may be transient.
    if (answer.status !== 409) return general;
  }
  const { data } = z.object({ typeName: z.string() }).safeParse(answer.body);
  const known = EXCEPTIONS.find(([type]) => data !== undefined && type.test(data.typeName));
  return known === undefined ? general : { ...general, kind: known[1] };
}
