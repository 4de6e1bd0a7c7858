/**
 * Kinds of commands under a supervisor that gets a stop signal, and their expected results for
 * every placement of the supervisor.
 */
import { expect } from '@jest/globals';

/** A loop that ends only by a signal. A shell handles signals between two sleeps. */
export const TICK = 'while :; do sleep 0.05; done';

export interface StoppedChild {
  readonly child: string;
  /** Prints `up` when it is ready for the signal. */
  readonly script: string;
  /** After SIGTERM. */
  readonly status: number;
  readonly signal?: string;
  /** Whether all its processes end within the grace period. */
  readonly graceful: boolean;
  readonly options?: readonly string[];
  /**
   * Whether the signal is sent twice in a row. The script then saves by the command in the shell
   * variable SAVE, which must last until after the second signal.
   */
  readonly twice?: boolean;
  readonly prints?: string;
}

export const STOPPED_CHILDREN: readonly StoppedChild[] = [
  {
    child: 'exits in time',
    script: `trap "exit 7" TERM INT; echo up; ${TICK}`,
    status: 7,
    graceful: true,
  },
  {
    child: 'ignores SIGINT',
    script: `trap "" INT; echo up; sleep 77`,
    status: 143,
    signal: 'SIGTERM',
    graceful: true,
  },
  {
    child: 'ignores both',
    script: `trap "" INT TERM; echo up; sleep 77`,
    status: 137,
    signal: 'SIGKILL',
    graceful: false,
  },
  {
    child: 'forks a grandchild that ignores signals',
    script: `sh -c 'trap "" TERM INT; echo up; sleep 77; :' & wait`,
    status: 143,
    signal: 'SIGTERM',
    graceful: false,
  },
  {
    child: 'dies while its grandchild still saves',
    script: `sh -c 'trap "sleep 0.2; echo saved; exit" TERM; echo up; ${TICK}' & wait`,
    status: 143,
    signal: 'SIGTERM',
    graceful: true,
    prints: 'saved',
  },
  {
    child: 'has a grandchild in a session of its own',
    script: `trap "exit 0" TERM; setsid sh -c 'trap "" TERM INT; echo up; sleep 77; :' & wait`,
    status: 0,
    graceful: true,
  },
  {
    child: 'has an orphan in a session of its own',
    script: `trap "exit 0" TERM; (setsid sh -c 'trap "" TERM INT; echo up; sleep 77; :' &); ${TICK}`,
    status: 0,
    graceful: true,
  },
  {
    child: 'drops its handler after the first signal',
    script: `trap "trap - TERM; stopped=1" TERM; echo up; while [ -z "$stopped" ]; do sleep 0.05; done; eval "\${SAVE:-sleep 0.4}"; echo saved; exit 9`,
    status: 9,
    graceful: true,
    twice: true,
    prints: 'saved',
  },
  {
    child: 'closes its output early',
    script: `trap "exit 5" TERM; echo up; exec >&-; ${TICK}`,
    status: 5,
    graceful: true,
    options: ['--runner-kind', 'github'],
  },
  {
    child: 'leaves a zombie',
    script: `(exit 3) & (sleep 0.1; echo up) & exec sleep 77`,
    status: 143,
    signal: 'SIGTERM',
    graceful: true,
  },
];

/**
 * Forwards its SIGTERM as another signal, and exits as its child does, with 5. The child prints
 * which of the two arrived. A SIGTERM of the supervisor itself would arrive before the forwarded
 * one.
 */
export const FORWARDS = `sh -c 't=0; u=0; trap "t=1" TERM; trap "u=1" USR1; echo up; while [ $u = 0 ]; do sleep 0.05; done; echo "child got term=$t usr1=$u"; exit 5' &
child=$!; trap 'kill -USR1 $child' TERM; status=200; while [ $status -gt 128 ]; do wait $child; status=$?; done; exit $status`;

/** The supervisor's log lines. */
export const interrupted = (signal: string): string => `Entrypoint received interrupt: ${signal}`;
export const swallowed = (signal: string): string =>
  `${interrupted(signal)} (already stopping, not passed on)`;
export const timedOut = (timeout: string): string =>
  `Process did not finish before ${timeout} timeout`;
export const gracefully = (grace: string): string =>
  `Process gracefully exited before ${grace} grace period`;
export const notExited = (grace: string): string =>
  `Process did not exit before ${grace} grace period`;

/**
 * Returns a cleanup command that prints why it runs, and lists all processes that it sees after the
 * command's end. It uses shell builtins only, so that it does not list itself.
 * @param own - whether the PID namespace belongs to the container; otherwise the list would be long
 */
export function census(own: boolean): string[] {
  const list =
    'for p in /proc/[0-9]*; do read -r line < "$p/stat" && echo "process $line"; done 2> /dev/null';
  return [
    'sh',
    '-c',
    `echo "reason=$HOLDFAST_STOP_REASON ours=$$,$PPID"; ${own ? `${list}; ` : ''}echo census`,
  ];
}

/**
 * Returns the listed processes other than init, supervisor and the census itself. A zombie counts
 * unless init has adopted it, because init will reap it.
 */
export function strangers(printed: string): string[] {
  const ours = ['1', ...(/ours=(\d+),(\d+)/.exec(printed)?.slice(1) ?? [])];
  const seen = printed.split('\n').filter((line) => line.startsWith('process '));
  expect(seen.length).toBeGreaterThanOrEqual(3);
  return seen.filter(
    (line) =>
      !ours.includes(line.split(' ')[1] ?? '') && !isFromOutside(line) && !isAdoptedZombie(line),
  );
}

/** Its state and parent follow the name, which is in parentheses. */
function isAdoptedZombie(line: string): boolean {
  return line.slice(line.lastIndexOf(')')).startsWith(') Z 1 ');
}

/**
 * Whether the test started the process in the container: its parent is outside of the container's
 * PID namespace, and may reap it late.
 */
function isFromOutside(line: string): boolean {
  return / [A-Z] 0 /.test(line.slice(line.lastIndexOf(')')));
}
