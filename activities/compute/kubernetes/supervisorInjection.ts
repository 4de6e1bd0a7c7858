/** Puts the supervisor before a runner container's command. Pure; what it does there is in docs/supervisor.md. */
import { createHash } from 'node:crypto';
import type { V1Container, V1EnvVar, V1Probe, V1Volume } from '@kubernetes/client-node';
import { omitUndefined } from '../../../core/domain/omitUndefined.ts';
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

/** How this installation's pods get the supervisor. */
export interface SupervisorSettings {
  /** Image with `cp` and the supervisor's folder at `/opt/holdfast`: the worker's own has both. */
  readonly image: string;
}

const FOLDER = '/holdfast';
const FOLDER_VOLUME = 'holdfast-supervisor';
const POD_INFO = '/etc/holdfast';
const POD_INFO_VOLUME = 'holdfast-pod-info';
const STOP_REASON_FILE = 'stop-reason';
/** tini reaps; the loader and its libraries make Node run in an image without a C library. */
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
/** Ports above those that anybody registers, below those that kernels hand out by themselves (32768 and up). */
const HOST_PORTS = { from: 20_000, count: 10_000 };
const PROBE_PERIOD_SECONDS = 1;
/** The supervisor holds an answer that is no news back until shortly before it is asked again: why, and what holds without, is in supervisor/ciRunner/probes.ts. */
const PROBE_WAIT = '900ms';
/** A node out of CPU may be slow to answer: a readiness probe that times out would call an idle runner busy. */
const PROBE_TIMEOUT_SECONDS = 4;
/** The workflow gives up first: the failure of a startup probe kills the container. */
const STARTUP_MARGIN_SECONDS = 60;
/** In the container's own environment they would change the supervisor's Node, or its loader. */
const NOT_FOR_THE_SUPERVISOR = /^(NODE_|LD_|MALLOC_|GLIBC_TUNABLES$|UV_|OPENSSL_|SSL_CERT_)/;

/** Which way it takes with these settings, and what is wrong with that (a sentence with the fix). */
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

/** What a pod needs so that its runner runs under the supervisor. */
export interface SupervisorPodParts {
  readonly annotations: Record<string, string>;
  /** Before all others. */
  readonly initContainers: V1Container[];
  readonly volumes: V1Volume[];
  readonly runner: Partial<V1Container>;
  /** Of its probes. */
  readonly port: number;
}

/**
 * @param runner - the runner container as it would run bare
 * @param pod - its name, and whether it is on its node's network
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
 * By variables, not options: so an image that brings its own supervisor is told the same way. The kubelet would read `$(NAME)` and `$$` in
 * them as its own: https://kubernetes.io/docs/tasks/inject-data-application/define-interdependent-environment-variables/
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

/** What a workload that resumes needs to know, under the supervisor or not. */
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
    // A namespace with a quota demands both; what the copy takes is given back before the runner starts.
    resources: { requests: { cpu: '10m', memory: '32Mi' }, limits: { cpu: '1', memory: '256Mi' } },
    securityContext: RESTRICTED_SECURITY_CONTEXT,
    volumeMounts: [{ name: FOLDER_VOLUME, mountPath: FOLDER }],
  };
}

/** On the node's network one port serves one pod: neighbours most likely get different ones. */
function hostPort(name: string): number {
  return (
    HOST_PORTS.from + (createHash('sha256').update(name).digest().readUInt32BE() % HOST_PORTS.count)
  );
}
