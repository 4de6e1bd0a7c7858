import { RUNNER_KIND_NAMES } from '../../core/domain/runnerKinds/runnerKinds.ts';

/**
 * Setting of the supervisor: a flag, or a variable so that an image's entry point can stay as it
 * is.
 */
export interface Setting {
  readonly flag: string;
  readonly env: string;
  readonly value: string;
  readonly help: string;
  readonly default?: string;
  /**
   * Whether the command receives the variable as well. All others are removed from its environment,
   * because a supervisor inside a job has settings of its own.
   */
  readonly rerouted?: true;
}

/** All settings of the supervisor, in the order of `--help`. */
export const SETTINGS = [
  {
    flag: 'timeout',
    env: 'HOLDFAST_TIMEOUT',
    value: 'DURATION',
    help: 'How long the command may run; then it is stopped and the status is 127. Default: for ever.',
  },
  {
    flag: 'signal-timeout',
    env: 'HOLDFAST_SIGNAL_TIMEOUT',
    value: 'DURATION',
    default: '10s',
    help: "The grace: from a stop's signal to SIGKILL.",
  },
  {
    flag: 'cleanup-timeout',
    env: 'HOLDFAST_CLEANUP_TIMEOUT',
    value: 'DURATION',
    default: '5s',
    help: 'On top of the grace: for the records and the cleanup command (at least 1s). Then the supervisor exits, always.',
  },
  {
    flag: 'drain-timeout',
    env: 'HOLDFAST_DRAIN_TIMEOUT',
    value: 'DURATION',
    default: '0s',
    help: 'With --on-term drain: how long the command may go on after SIGTERM. On top of the other two.',
  },
  {
    flag: 'on-term',
    env: 'HOLDFAST_ON_TERM',
    value: 'drain|stop|checkpoint',
    default: 'stop',
    help: 'Effect of SIGTERM: let the command finish; stop it; stop it so that a later attempt continues from its saved state.',
  },
  {
    flag: 'stop-signals',
    env: 'HOLDFAST_STOP_SIGNALS',
    value: 'SIGNALS',
    help: 'Signals that a stop sends, such as SIGINT,SIGTERM@5s. Default: SIGINT at the timeout, otherwise the received signal; each once.',
  },
  {
    flag: 'signal-target',
    env: 'HOLDFAST_SIGNAL_TARGET',
    value: 'group|process',
    default: 'group',
    help: "Who gets a stop's signals: the command's whole process group, or the command alone, which passes them on itself. SIGKILL at the end of the grace is for all.",
  },
  {
    flag: 'cleanup-command',
    env: 'HOLDFAST_CLEANUP_COMMAND',
    value: 'COMMAND',
    help: 'Command that runs after the main command has ended and the marker is written: words separated by spaces, or a JSON array. Receives HOLDFAST_STOP_REASON, HOLDFAST_EXIT_CODE, HOLDFAST_EXIT_SIGNAL.',
  },
  {
    flag: 'runner-kind',
    env: 'HOLDFAST_RUNNER_KIND',
    value: RUNNER_KIND_NAMES.join('|'),
    default: 'command',
    help: "Kind of runner. github: GitHub's runner, whose log and job hooks show when it is online and busy. command: a plain command.",
  },
  {
    flag: 'one-job',
    env: 'HOLDFAST_ONE_JOB',
    value: '1',
    help: "1: the runner takes one job only. /ready then answers no from its job's start to its end.",
  },
  {
    flag: 'probe-port',
    env: 'HOLDFAST_PROBE_PORT',
    value: 'PORT',
    help: 'Serves /startup, /ready and /live there. Default: no probes. 0: any free port, which is logged.',
  },
  {
    flag: 'probe-host',
    env: 'HOLDFAST_PROBE_HOST',
    value: 'ADDRESS',
    help: 'Address of the probes. Default: all of them, for the kubelet.',
  },
  {
    flag: 'start-file',
    env: 'HOLDFAST_START_FILE',
    value: 'PATH',
    help: 'File that is written at the start: {startedAt}. The probes listen from then on, until the supervisor exits. Default: none.',
  },
  {
    flag: 'log-file',
    env: 'HOLDFAST_LOG_FILE',
    value: 'PATH',
    help: 'File to which everything that is printed is written, too, in the order in which it was read. Default: none.',
  },
  {
    flag: 'merge-output',
    env: 'HOLDFAST_MERGE_OUTPUT',
    value: '1',
    help: "1: the command's standard error goes to standard output, in the order in which it is printed. Not for --runner-kind github.",
  },
  {
    flag: 'marker',
    env: 'HOLDFAST_MARKER_FILE',
    value: 'PATH',
    help: 'File that is written at the end: {exitCode, signal, reason, startedAt, endedAt}. Default: none.',
  },
  {
    flag: 'termination-log',
    env: 'HOLDFAST_TERMINATION_LOG',
    value: 'PATH',
    help: 'The same for the kubelet. Default: /dev/termination-log where that exists.',
  },
  {
    flag: 'shared-dir',
    env: 'HOLDFAST_SHARED_DIR',
    value: 'PATH',
    help: 'Folder whose files are shared between the steps of a job. Needs --shared-snapshots. Default: none.',
  },
  {
    flag: 'shared-snapshots',
    env: 'HOLDFAST_SHARED_SNAPSHOTS',
    value: 'PATH',
    help: 'Folder with shared-before.json, whose files are copied to --shared-dir before the command starts, and shared-after.json, which is created from them at the end.',
  },
  {
    flag: 'run-dir',
    env: 'HOLDFAST_RUN_DIR',
    value: 'PATH',
    help: "Folder for the supervisor's own small files. Default: a new one in the folder for temporary files.",
  },
  {
    flag: 'stop-reason-source',
    env: 'HOLDFAST_STOP_REASON_SOURCE',
    value: 'PATH',
    help: 'File with the reason why the command is being stopped (a downward API volume). Default: derived from the signal.',
  },
  {
    flag: 'state-dir',
    env: 'HOLDFAST_STATE_DIR',
    value: 'PATH',
    rerouted: true,
    help: 'Folder that outlives an attempt; made if it is not there.',
  },
  {
    flag: 'attempt',
    env: 'HOLDFAST_ATTEMPT',
    value: 'NUMBER',
    default: '1',
    rerouted: true,
    help: 'Which attempt this is.',
  },
  {
    flag: 'assume-dedicated-pid1',
    env: 'HOLDFAST_ASSUME_DEDICATED_PID1',
    value: '1',
    help: '1: vouches that PID 1, a tini, runs nothing but this supervisor, where their command lines do not show it (a script in between).',
  },
] as const satisfies readonly Setting[];

/** Name of a supervisor setting: its flag without the leading dashes. */
export type SettingName = (typeof SETTINGS)[number]['flag'];

/**
 * Prefix of variables that are passed to the command without it, and only to the command. Used for
 * variables that must not affect the supervisor's own Node or dynamic loader.
 */
export const CHILD_ENV_PREFIX = 'HOLDFAST_CHILD_ENV_';

/** Returns the text of `--help`. */
export function helpText(): string {
  const settings = SETTINGS.map((setting: Setting) => {
    const more = setting.default === undefined ? '' : ` Default: ${setting.default}.`;
    return `  --${setting.flag} ${setting.value}\n      ${setting.env}\n      ${setting.help}${more}\n`;
  });
  return `Usage: supervisor [options] -- COMMAND [ARGUMENTS]

Runs a command as the first process of a container (under tini), and ends it in time: signals, timeouts, records.
Each option can be given by its variable instead. Durations: 30s, 10m, 1h30m.

${settings.join('')}
  ${CHILD_ENV_PREFIX}NAME=VALUE
      Gives NAME=VALUE to the command only (NODE_OPTIONS, LD_PRELOAD: in their own name they would change the supervisor, too).

The command sees HOLDFAST_STOP_REASON_FILE (it holds the reason before a stop's first signal is sent: timeout, cancelled,
superseded, evicted, drained), HOLDFAST_STATE_DIR and HOLDFAST_ATTEMPT.

Exit status: the command's own; 127 if it could not be started or did not finish before its timeout; 128+n if signal n ended it.
`;
}
