/**
 * Injects the supervisor before the command of a runner container. Pure. docs/supervisor.md
 * describes the supervisor.
 */
import { createHash } from 'node:crypto';
import type { V1Container, V1EnvVar, V1Probe, V1Volume } from '@kubernetes/client-node';
import { omitUndefined } from '../../../core/domain/omitUndefined.ts';
import { MAX_CLOCK_SKEW_MS } from '../../../core/domain/podConditions.ts';
import { SUPERVISOR_CONTAINER } from '../../../core/domain/podTemplate.ts';
import { STATE_CLAIM } from '../../../core/domain/pod.ts';
import { takesJobs } from '../../../core/domain/runnerKinds/runnerKinds.ts';
import {
  COMMAND_PROBES,
  ONE_JOB_PROBES,
  PROBES_ANNOTATION,
  RUNNER_PROBES,
  STOP_REASON_ANNOTATION,
} from './metadata.ts';
import { RESTRICTED_SECURITY_CONTEXT } from './podSecurity.ts';
import type { PodRequest, SupervisorConfig } from '../../../core/domain/pod.ts';

/** Supervisor of this installation's pods. */
export interface SupervisorSettings {
  /**
   * Image with `cp` and the supervisor's directory at `/opt/holdfast`. The worker's own image has
   * both.
   */
  readonly image: string;
}

const FOLDER = '/holdfast';
const FOLDER_VOLUME = 'holdfast-supervisor';
const POD_INFO = '/etc/holdfast';
const POD_INFO_VOLUME = 'holdfast-pod-info';
const STOP_REASON_FILE = 'stop-reason';
/**
 * tini reaps child processes. The loader and its libraries let Node run in an image without a C
 * library.
 */
const SUPERVISOR = [
  `${FOLDER}/tini`,
  '-s',
  '--',
  `${FOLDER}/ld.so`,
  '--library-path',
  `${FOLDER}/lib`,
  `${FOLDER}/node`,
  `${FOLDER}/supervisor.mjs`,
  '--',
];
const PROBE_PORT = 8078;
/**
 * Ports for pods on the host network. They are above most registered ports and below the ephemeral
 * ports of kernels (32768 and up).
 */
const HOST_PORTS = { from: 20_000, count: 10_000 };
const PROBE_PERIOD_SECONDS = 1;
/**
 * Time for which the supervisor delays the response to a probe whose state has not changed, until
 * shortly before the next probe. The reasons and the behavior without the delay are in
 * supervisor/ciRunner/probes.ts.
 */
const PROBE_WAIT = '900ms';
/**
 * Probe timeout (s). A node without free CPU may respond slowly, and a readiness probe that times
 * out would make an idle runner look busy.
 */
const PROBE_TIMEOUT_SECONDS = 4;
/**
 * Additional time of the startup probe (s), so that the workflow gives up first: a failed startup
 * probe kills the container. The workflow allows for MAX_CLOCK_SKEW_MS.
 */
const STARTUP_MARGIN_SECONDS = 60 + MAX_CLOCK_SKEW_MS / 1_000;
/**
 * Variables that would change the supervisor's Node or its loader if they were set in the
 * container's environment.
 */
const NOT_FOR_THE_SUPERVISOR = /^(NODE_|LD_|MALLOC_|GLIBC_TUNABLES$|UV_|OPENSSL_|SSL_CERT_)/;

/**
 * Returns the mode of the supervisor for these settings. `fault` is the error of an invalid
 * combination (a sentence with the fix).
 */
export function resolveSupervisorMode(
  supervision: SupervisorConfig | undefined,
  settings: SupervisorSettings | undefined,
  commandKnown: boolean,
): { mode: 'inject' | 'image' | 'none'; fault?: string } {
  if (supervision === undefined) return { mode: 'none' };
  const mode = supervision.mode ?? (settings === undefined ? 'none' : 'inject');
  if (mode === 'inject' && settings === undefined)
    return {
      mode,
      fault:
        'supervisor: "inject" needs an image to copy the supervisor from: set HOLDFAST_SUPERVISOR_IMAGE on the worker',
    };
  if (mode === 'inject' && !commandKnown) {
    return {
      mode,
      fault:
        'supervisor: it cannot be put before the entry point of the image, which is not known here: give "command", or set "supervisor" to "image" or "none"',
    };
  }
  if (mode === 'none' && supervision.onTerm !== 'stop') {
    return {
      mode,
      fault: `onTerm: "${supervision.onTerm}" needs the supervisor: set HOLDFAST_SUPERVISOR_IMAGE on the worker, or "supervisor" to "image" if the image has it`,
    };
  }
  return { mode };
}

/** Parts of a pod that run its runner under the supervisor. */
export interface SupervisorPodParts {
  readonly annotations: Record<string, string>;
  /** Init containers, to be placed before all others. */
  readonly initContainers: V1Container[];
  readonly volumes: V1Volume[];
  readonly runner: Partial<V1Container>;
  /** Port of the probes. */
  readonly port: number;
}

/**
 * Puts a runner container under the supervisor.
 * @param runner - runner container without the supervisor
 * @param pod - its name, and whether it uses the host network
 */
export function withSupervisor(
  runner: Partial<V1Container>,
  pod: { name: string; hostNetwork: boolean },
  supervision: SupervisorConfig,
  mode: 'inject' | 'image',
  settings: SupervisorSettings | undefined,
): SupervisorPodParts {
  const port = pod.hostNetwork ? hostPort(pod.name) : PROBE_PORT;
  const podInfo = {
    name: POD_INFO_VOLUME,
    downwardAPI: {
      items: [
        {
          path: STOP_REASON_FILE,
          fieldRef: { fieldPath: `metadata.annotations['${STOP_REASON_ANNOTATION}']` },
        },
      ],
    },
  };
  const injected = mode === 'inject' && settings !== undefined;
  return {
    annotations: { [PROBES_ANNOTATION]: probesOf(supervision) },
    initContainers: injected ? [supervisorInitContainer(settings)] : [],
    volumes: injected ? [podInfo, { name: FOLDER_VOLUME, emptyDir: {} }] : [podInfo],
    runner: supervisedRunner(runner, supervision, injected, port),
    port,
  };
}

function probesOf({ runnerKind, ephemeral }: SupervisorConfig): string {
  if (!takesJobs(runnerKind)) return COMMAND_PROBES;
  return ephemeral ? ONE_JOB_PROBES : RUNNER_PROBES;
}

function supervisedRunner(
  { command, args, ...rest }: Partial<V1Container>,
  supervision: SupervisorConfig,
  injected: boolean,
  port: number,
): Partial<V1Container> {
  const mounts = [
    ...(rest.volumeMounts ?? []),
    { name: POD_INFO_VOLUME, mountPath: POD_INFO, readOnly: true },
  ];
  const probe = (path: string, failureThreshold: number): V1Probe => ({
    httpGet: { path: `${path}?wait=${PROBE_WAIT}`, port },
    periodSeconds: PROBE_PERIOD_SECONDS,
    timeoutSeconds: PROBE_TIMEOUT_SECONDS,
    failureThreshold,
  });
  return {
    ...rest,
    ...(injected
      ? { command: [...SUPERVISOR, ...(command ?? []), ...(args ?? [])] }
      : omitUndefined({ command, args })),
    env: [
      ...(rest.env ?? []).map((variable) =>
        NOT_FOR_THE_SUPERVISOR.test(variable.name) ? withChildEnvPrefix(variable) : variable,
      ),
      ...environment(supervision, port, rest.terminationMessagePath),
    ],
    volumeMounts: injected
      ? [...mounts, { name: FOLDER_VOLUME, mountPath: FOLDER, readOnly: true }]
      : mounts,
    startupProbe: probe(
      '/startup',
      Math.ceil(supervision.startupTimeoutMs / 1_000 / PROBE_PERIOD_SECONDS) +
        STARTUP_MARGIN_SECONDS,
    ),
    readinessProbe: probe('/ready', 1),
  };
}

/**
 * Returns the settings of the supervisor as environment variables, not as options, so that an image
 * with its own supervisor gets them in the same way. `$` is escaped, because the kubelet would
 * expand `$(NAME)` and `$$` in them:
 * https://kubernetes.io/docs/tasks/inject-data-application/define-interdependent-environment-variables/
 */
function environment(
  supervision: SupervisorConfig,
  port: number,
  terminationLog: string | undefined,
): V1EnvVar[] {
  const {
    runnerKind,
    ephemeral,
    onTerm,
    drainTimeoutMs,
    signalTimeoutMs,
    cleanupTimeoutMs,
    signals,
    cleanupCommand,
    timeoutMs,
    signalTarget,
  } = supervision;
  const values: Record<string, string | undefined> = {
    HOLDFAST_RUNNER_KIND: runnerKind,
    HOLDFAST_ONE_JOB: takesJobs(runnerKind) && ephemeral ? '1' : undefined,
    HOLDFAST_MERGE_OUTPUT: takesJobs(runnerKind) ? undefined : '1',
    HOLDFAST_PROBE_PORT: String(port),
    HOLDFAST_TERMINATION_LOG: terminationLog,
    HOLDFAST_STOP_REASON_SOURCE: `${POD_INFO}/${STOP_REASON_FILE}`,
    HOLDFAST_ON_TERM: onTerm,
    HOLDFAST_DRAIN_TIMEOUT: `${drainTimeoutMs}ms`,
    HOLDFAST_SIGNAL_TIMEOUT: `${signalTimeoutMs}ms`,
    HOLDFAST_CLEANUP_TIMEOUT: `${cleanupTimeoutMs}ms`,
    HOLDFAST_STOP_SIGNALS: signals,
    HOLDFAST_SIGNAL_TARGET: signalTarget,
    HOLDFAST_CLEANUP_COMMAND: cleanupCommand && JSON.stringify(cleanupCommand),
    HOLDFAST_TIMEOUT: timeoutMs === undefined ? undefined : `${timeoutMs}ms`,
  };
  return Object.entries(values).flatMap(([name, value]) =>
    value === undefined ? [] : [{ name, value: value.replaceAll('$', '$$$$') }],
  );
}

/** Returns the variables for a workload that resumes, with or without the supervisor. */
export function attemptEnvironment({
  identity,
  volumeClaims = [],
}: PodRequest): Record<string, string> {
  const state = volumeClaims.find(({ name }) => name === STATE_CLAIM);
  return omitUndefined({
    HOLDFAST_ATTEMPT: String(identity.attempt),
    HOLDFAST_STATE_DIR: state?.mountPath,
  });
}

function withChildEnvPrefix({ name, value, valueFrom }: V1EnvVar): V1EnvVar {
  return omitUndefined({ name: `HOLDFAST_CHILD_ENV_${name}`, value, valueFrom });
}

function supervisorInitContainer({ image }: SupervisorSettings): V1Container {
  return {
    name: SUPERVISOR_CONTAINER,
    image,
    command: ['cp', '-R', '/opt/holdfast/.', `${FOLDER}/`],
    // A namespace with a quota requires requests and limits. The resources of the copy are free
    // again before the runner starts.
    resources: { requests: { cpu: '10m', memory: '32Mi' }, limits: { cpu: '1', memory: '256Mi' } },
    securityContext: RESTRICTED_SECURITY_CONTEXT,
    volumeMounts: [{ name: FOLDER_VOLUME, mountPath: FOLDER }],
  };
}

/**
 * Returns the probe port of a pod on the host network, where each port serves one pod. Neighbors
 * most likely get different ports.
 */
function hostPort(name: string): number {
  return (
    HOST_PORTS.from + (createHash('sha256').update(name).digest().readUInt32BE() % HOST_PORTS.count)
  );
}
