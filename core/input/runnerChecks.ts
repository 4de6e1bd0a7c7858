/**
 * Checks combinations of fields of a runner's input: invalid ones, and valid ones that may
 * surprise. Pure.
 */
import { RUNNER_TIMEOUTS, type InputError, type RunnerInput } from '../contract/index.ts';
import { omitUndefined } from '../domain/omitUndefined.ts';
import { storagePathError } from '../domain/artifactLayout.ts';
import { formatDuration, parseDuration } from '../domain/duration.ts';
import { STATE_CLAIM } from '../domain/pod.ts';
import { parseStopSignals } from '../domain/stopSignals.ts';
import {
  isReservedEnv,
  isReservedMetadata,
  isReservedPath,
  RUNNER_CONTAINER,
} from '../domain/podTemplate.ts';
import { scopeErrors } from './fields.ts';
import { networkErrors } from './network.ts';
import { podTemplateErrors } from './podTemplate.ts';

type Fields = readonly (keyof RunnerInput)[];
const CI_SERVER_FIELDS: Fields = [
  'organization',
  'repository',
  'enterprise',
  'credential',
  'runnerGroup',
  'runnerGroupId',
  'labels',
  'disableUpdate',
  'demand',
  'scaleSet',
  'rerun',
];

/** Limits of the runner's scope for its fields. */
export interface RunnerLimits {
  /** Maximum job timeout, a duration string. */
  readonly jobTimeoutCap: string;
  /** Grace period of its stop, from the first signal on (ms). */
  readonly signalTimeoutMs: number;
}

/** Returns all errors of combinations of fields. */
export function runnerErrors(
  input: RunnerInput,
  { jobTimeoutCap, signalTimeoutMs }: RunnerLimits,
): InputError[] {
  return [
    ...(input.ciServer === 'none'
      ? plainCommandErrors(input)
      : [
          ...scopeErrors(input),
          ...groupErrors(input),
          ...updateErrors(input),
          ...scaleSetErrors(input),
          ...jobErrors(input),
        ]),
    ...storageErrors(input),
    ...timeoutErrors(input, jobTimeoutCap),
    ...stopErrors(input),
    ...gracePeriodErrors(input),
    ...signalErrors(input, signalTimeoutMs),
    ...evictionErrors(input),
    ...claimErrors(input),
    ...networkErrors(input),
    ...Object.keys(input.env ?? {})
      .filter(isReservedEnv)
      .map((name): InputError => ({
        code: 'reserved',
        field: `env.${name}`,
        message: 'is set by Holdfast; remove it',
      })),
    ...podTemplateErrors(input.pod ?? {}).map((error) => ({
      ...error,
      field: `pod.${error.field}`,
    })),
  ];
}

function plainCommandErrors(input: RunnerInput): InputError[] {
  const errors = CI_SERVER_FIELDS.filter((field) => input[field] !== undefined).map(
    (field): InputError => ({
      code: 'not_applicable',
      field,
      message: 'has no meaning with ciServer "none"; remove it',
    }),
  );
  if (input.ephemeral === false)
    errors.push({
      code: 'conflict',
      field: 'ephemeral',
      message:
        'must be true with ciServer "none", because a plain command runs once; set it to true, or remove it',
    });
  if (input.command === undefined)
    errors.push({
      code: 'required',
      field: 'command',
      message: 'is required with ciServer "none"',
    });
  if (input.timeouts?.idle !== undefined)
    errors.push({
      code: 'not_applicable',
      field: 'timeouts.idle',
      message: 'has no meaning with ciServer "none": a plain command is never idle',
    });
  return errors;
}

function groupErrors({ runnerGroup, runnerGroupId, repository }: RunnerInput): InputError[] {
  if (runnerGroup === undefined) return [];
  if (runnerGroupId !== undefined)
    return [
      {
        code: 'conflict',
        field: 'runnerGroup, runnerGroupId',
        message: 'exclude each other: give the name or the id',
      },
    ];
  return repository === undefined
    ? []
    : [
        {
          code: 'not_applicable',
          field: 'runnerGroup',
          message: 'has no meaning with a repository, which has no runner groups; remove it',
        },
      ];
}

function updateErrors({ disableUpdate, ephemeral = true }: RunnerInput): InputError[] {
  return disableUpdate === undefined || !ephemeral
    ? []
    : [
        {
          code: 'not_applicable',
          field: 'disableUpdate',
          message:
            'is for static runners (ephemeral false): a single-use registration has no such choice; remove it',
        },
      ];
}

function scaleSetErrors({ demand, scaleSet, set, ephemeral = true }: RunnerInput): InputError[] {
  if (demand !== 'scaleSet')
    return scaleSet === undefined
      ? []
      : [
          {
            code: 'not_applicable',
            field: 'scaleSet',
            message: 'is for demand "scaleSet"; set that, or remove it',
          },
        ];
  const errors: InputError[] = [];
  if (!ephemeral)
    errors.push({
      code: 'conflict',
      field: 'ephemeral',
      message: 'must be true with demand "scaleSet": a scale set has single-use runners only',
    });
  if (set === undefined && scaleSet?.name === undefined)
    errors.push({
      code: 'required',
      field: 'scaleSet.name',
      message: 'is missing: a runner without a set needs the name of its scale set',
    });
  return errors;
}

function jobErrors({ job }: RunnerInput): InputError[] {
  return job === undefined
    ? []
    : [
        {
          code: 'not_applicable',
          field: 'job',
          message: 'is for the steps of a job (ciServer "none"); remove it',
        },
      ];
}

function storageErrors({ storage, job }: RunnerInput): InputError[] {
  if (storage === undefined) return [];
  if (job === undefined)
    return [
      { code: 'not_applicable', field: 'storage', message: 'is for the steps of a job; remove it' },
    ];
  const fault = storagePathError(storage);
  return fault === undefined ? [] : [{ code: 'invalid', field: 'storage', message: fault }];
}

function timeoutErrors({ timeouts }: RunnerInput, cap: string): InputError[] {
  const asked = timeouts?.jobTimeout;
  if (asked === undefined || ms(asked) <= ms(cap)) return [];
  return [
    {
      code: 'out_of_range',
      field: 'timeouts.jobTimeout',
      message: `is over the cap of ${cap}; a runner may only lower it (the worker's HOLDFAST_TIMEOUTS names scopes with a higher cap)`,
    },
  ];
}

function stopErrors({ onTerm, stop = {}, supervisor }: RunnerInput): InputError[] {
  const errors: InputError[] = [];
  if (onTerm === 'drain' && stop.drainTimeout === undefined)
    errors.push({
      code: 'required',
      field: 'stop.drainTimeout',
      message: 'is missing: onTerm "drain" needs to know how long the job may go on',
    });
  if (onTerm !== 'drain' && stop.drainTimeout !== undefined)
    errors.push({
      code: 'not_applicable',
      field: 'stop.drainTimeout',
      message: 'has no effect without onTerm "drain": add that, or remove it',
    });
  if (supervisor !== 'none') return errors;
  const needing = [
    ...(onTerm === undefined || onTerm === 'stop' ? [] : ['onTerm']),
    ...(stop.signals === undefined ? [] : ['stop.signals']),
    ...(stop.target === undefined ? [] : ['stop.target']),
    ...(stop.cleanupCommand === undefined ? [] : ['stop.cleanupCommand']),
  ];
  return [
    ...errors,
    ...needing.map((field): InputError => ({
      code: 'conflict',
      field,
      message: 'needs the supervisor: remove it, or supervisor "none"',
    })),
  ];
}

function gracePeriodErrors({ ciServer, stop = {} }: RunnerInput): InputError[] {
  const { gracePeriod, signalTimeout, cleanupTimeout } = stop;
  if (gracePeriod === undefined) return [];
  const field = 'stop.gracePeriod';
  if (ciServer !== 'none')
    return [
      {
        code: 'not_applicable',
        field,
        message:
          'is for plain commands (ciServer "none"): give stop.signalTimeout and stop.cleanupTimeout instead',
      },
    ];
  return Object.keys(omitUndefined({ signalTimeout, cleanupTimeout })).map((other): InputError => ({
    code: 'conflict',
    field,
    message: `and stop.${other} exclude each other: gracePeriod sets both signalTimeout and cleanupTimeout; remove one of the two`,
  }));
}

function signalErrors({ stop = {} }: RunnerInput, signalTimeoutMs: number): InputError[] {
  if (stop.signals === undefined) return [];
  try {
    parseStopSignals(stop.signals, signalTimeoutMs);
    return [];
  } catch (error) {
    if (error instanceof RangeError)
      return [{ code: 'invalid', field: 'stop.signals', message: error.message }];
    throw error;
  }
}

function evictionErrors(input: RunnerInput): InputError[] {
  const { onTerm, onEviction, maxAttempts, timeouts } = input;
  if (onEviction === 'resume') return resumeErrors(input);
  const unused = [
    ...(maxAttempts === undefined ? [] : ['maxAttempts']),
    ...(timeouts?.maxAge === undefined ? [] : ['timeouts.maxAge']),
  ];
  const errors = unused.map((field): InputError => ({
    code: 'not_applicable',
    field,
    message: 'has no effect without onEviction "resume": add that, or remove it',
  }));
  if (onTerm === 'checkpoint')
    errors.unshift({
      code: 'conflict',
      field: 'onTerm',
      message:
        'must not be "checkpoint" without onEviction "resume", because nothing would continue from the checkpoint',
    });
  return errors;
}

function resumeErrors({ ciServer, timeouts = {}, volumeClaims = [] }: RunnerInput): InputError[] {
  const errors: InputError[] = [];
  const { jobTimeout, maxAge = RUNNER_TIMEOUTS.maxAge } = timeouts;
  if (jobTimeout !== undefined && ms(jobTimeout) > ms(maxAge))
    errors.push({
      code: 'conflict',
      field: 'timeouts.maxAge',
      message: `of ${maxAge} is shorter than timeouts.jobTimeout: raise it, or lower that`,
    });
  if (ciServer !== 'none')
    errors.push({
      code: 'conflict',
      field: 'onEviction',
      message:
        'must not be "resume" with a CI server, whose job is lost with its runner; set ciServer "none", or remove it',
    });
  if (!volumeClaims.some(({ name }) => name === STATE_CLAIM))
    errors.push({
      code: 'required',
      field: 'volumeClaims',
      message: `must have a claim called "${STATE_CLAIM}" for onEviction "resume": the next attempt reads the checkpoint from it`,
    });
  return errors;
}

function claimErrors({ volumeClaims = [] }: RunnerInput): InputError[] {
  const errors: InputError[] = [];
  volumeClaims.forEach(({ name, mountPath, claim, storage, ...ofMade }, index) => {
    const field = `volumeClaims.${index}`;
    const before = volumeClaims.slice(0, index);
    if (before.some((other) => other.name === name))
      errors.push({
        code: 'duplicate',
        field: `${field}.name`,
        message: `is used twice: "${name}"`,
      });
    if (before.some((other) => other.mountPath === mountPath))
      errors.push({
        code: 'duplicate',
        field: `${field}.mountPath`,
        message: `is used twice: "${mountPath}"`,
      });
    if (isReservedPath(mountPath))
      errors.push({
        code: 'reserved',
        field: `${field}.mountPath`,
        message: "is a folder of Holdfast's own; choose another",
      });
    if (claim === undefined && storage === undefined)
      errors.push({
        code: 'required',
        field: `${field}.storage`,
        message: 'is required; set the size of the claim ("10Gi"), or name an existing claim',
      });
    const idle = Object.keys(ofMade);
    if (storage === undefined && idle.length > 0)
      errors.push({
        code: 'required',
        field: `${field}.storage`,
        message: `is missing: ${idle.join(', ')} ${idle.length === 1 ? 'is' : 'are'} for a claim that Holdfast makes`,
      });
    for (const key of Object.keys(ofMade.annotations ?? {}).filter(isReservedMetadata))
      errors.push({
        code: 'reserved',
        field: `${field}.annotations.${key}`,
        message: 'is set by Holdfast; remove it',
      });
  });
  return errors;
}

/** Maximum grace periods that platforms observe, longest first (ms). */
const PLATFORM_LIMITS = [
  {
    ms: 600_000,
    what: "cluster-autoscaler's scale-down (600 s unless --max-graceful-termination-sec is raised)",
  },
  { ms: 120_000, what: 'the notice of a spot instance (120 s)' },
  { ms: 15_000, what: "a GKE node's shutdown (15 s)" },
] as const;

/**
 * Returns warnings for settings that are valid but may surprise.
 * @param graceMs - whole grace period of the runner (ms)
 */
export function runnerWarnings(input: RunnerInput, graceMs: number): string[] {
  const beyond = PLATFORM_LIMITS.filter((limit) => graceMs > limit.ms).map(({ what }) => what);
  const warnings =
    beyond.length === 0
      ? []
      : [
          `stop: the grace period of ${formatDuration(graceMs)} in all is longer than ${beyond.join(', ')} allow; a hard eviction of a node without resources allows none`,
        ];
  const containers = (input.pod?.spec?.['containers'] ?? []) as { name?: string }[];
  for (const { name } of containers) {
    if (name === RUNNER_CONTAINER) continue;
    warnings.push(
      `pod: container ${name ?? ''} is stopped together with the runner; as an init container with restartPolicy "Always" (a native sidecar) it outlives the runner`,
    );
  }
  return warnings;
}

const ms = (text: string): number => parseDuration(text) ?? Number.NaN;
