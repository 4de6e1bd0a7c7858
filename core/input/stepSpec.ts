/** Converts a step of a job into the input of a runner. Pure. */
import {
  STEP_TIMEOUTS,
  type JobInput,
  type JobTrigger,
  type JobStage,
  type PostStepInput,
  type RunnerInput,
  type StepInput,
  type StepResources,
  type StepStorage,
} from '../contract/index.ts';
import { omitUndefined } from '../domain/omitUndefined.ts';
import { stepPath } from '../domain/artifactLayout.ts';
import { RUNNER_CONTAINER } from '../domain/podTemplate.ts';
import type { ScopeTimeouts } from './timeoutPolicy.ts';

/** Validated step of a job. */
export interface StepSpec {
  readonly stage: JobStage;
  readonly name: string;
  readonly workflowId: string;
  readonly bestEffort: boolean;
  readonly skipOnSuccess: boolean;
  /** Storage of the step's files. */
  readonly storage: Omit<StepStorage, 'sharedDirSources'>;
  /** Input of the step's `runner` workflow, except for the storage. */
  readonly runner: RunnerInput;
}

type ComeUpTimeouts = Pick<ScopeTimeouts, 'podUnscheduled' | 'podPending' | 'registration'>;

/** Run of the `job` workflow that starts the steps. */
interface JobRun {
  readonly workflowId: string;
  readonly runId?: string;
}

/**
 * Returns a step with the input of its runner.
 * @param comeUp - timeouts of the repository for the pods of steps, which a step does not have
 * itself
 */
export function stepSpec(
  job: JobInput,
  input: PostStepInput,
  stage: JobStage,
  workflowId: string,
  comeUp: ComeUpTimeouts,
  jobRun: JobRun,
): StepSpec {
  const {
    name,
    uploadTimeout = STEP_TIMEOUTS.uploadTimeout,
    bestEffort = false,
    skipOnSuccess = false,
  } = input;
  const path = stepPath(
    {
      ...omitUndefined({ repository: job.repository }),
      job: job.name,
      buildId: jobRun.runId ?? '-',
    },
    stage,
    name,
  );
  return {
    stage,
    name,
    workflowId,
    bestEffort,
    skipOnSuccess,
    storage: { path, timeout: uploadTimeout },
    runner: runnerInput(job, input, comeUp, jobRun),
  };
}

function runnerInput(
  { name, source, namespace }: JobInput,
  input: StepInput,
  comeUp: ComeUpTimeouts,
  { workflowId, runId = '' }: JobRun,
): RunnerInput {
  const {
    image,
    commands = '',
    command = ['/bin/sh', '-e', '-c', commands],
    timeout = STEP_TIMEOUTS.timeout,
    gracePeriod = STEP_TIMEOUTS.gracePeriod,
    onEviction,
  } = input;
  return {
    ciServer: 'none',
    job: workflowId,
    command,
    env: { ...input.env, JOB_NAME: name, BUILD_ID: runId, ...sourceEnv(source) },
    timeouts: { ...comeUp, jobTimeout: timeout },
    stop: { gracePeriod, ...input.stop },
    ...(source?.untrusted === true ? { untrusted: true } : {}),
    ...omitUndefined({ image, onEviction, namespace, pod: podOf(input) }),
  };
}

function sourceEnv(source: JobTrigger | undefined): Record<string, string> {
  if (source === undefined) return {};
  const { event, commit, ref, base, pullRequest } = source;
  return omitUndefined({
    JOB_EVENT: event,
    JOB_COMMIT: commit,
    JOB_REF: ref,
    JOB_BASE: base,
    JOB_PULL_REQUEST: pullRequest === undefined ? undefined : String(pullRequest),
  });
}

function podOf({
  resources,
  volumes = [],
  securityContext: rights,
}: StepInput): RunnerInput['pod'] {
  if (resources === undefined && volumes.length === 0 && rights === undefined) return undefined;
  const volumeMounts = volumes.map(({ name, mountPath, readOnly }) => ({
    name,
    mountPath,
    ...omitUndefined({ readOnly }),
  }));
  const sources = volumes.map(({ mountPath: _path, readOnly: _readOnly, ...source }) => source);
  return {
    spec: {
      containers: [
        {
          name: RUNNER_CONTAINER,
          ...(resources === undefined ? {} : { resources: quantitiesOf(resources) }),
          ...(volumes.length > 0 ? { volumeMounts } : {}),
          ...(rights === undefined ? {} : { securityContext: rights }),
        },
      ],
      ...(volumes.length > 0 ? { volumes: sources } : {}),
    },
  };
}

/** Returns the quantities as strings, as in Kubernetes. */
function quantitiesOf(resources: StepResources): StepResources {
  return Object.fromEntries(
    Object.entries(resources).map(([kind, amounts = {}]) => [
      kind,
      Object.fromEntries(Object.entries(amounts).map(([name, amount]) => [name, String(amount)])),
    ]),
  );
}
