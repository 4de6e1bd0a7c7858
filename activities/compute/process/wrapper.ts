/**
 * Runs one runner process of a pod directory, outside of the worker. It has its own session, so it
 * survives a SIGKILL of the worker or of its process group, and the closing of its terminal. It is
 * for a process pod what the kubelet is for a pod.
 *
 * It is started in the pod's directory, which contains all its state (podDirectory.ts). It gets no
 * path from the outside, so it cannot confuse a directory that was moved to trash/ with a new one
 * of the same name.
 *
 * Signals: SIGTERM means that stop.json must be read. The file is also read every second, in case
 * the signal was lost. SIGTERM without a stop.json, or SIGINT, means that the machine goes down:
 * the runner gets SIGTERM and its grace period, and the ended pod stays for its workflow to see. If
 * the wrapper itself is killed, the pod is lost: the next observer kills the rest of it and removes
 * it (observePods.ts).
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { access, mkdir, open, unlink } from 'node:fs/promises';
import { constants } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { omitUndefined } from '../../../core/domain/omitUndefined.ts';
import { createFile, hasCode, readJson, replaceFile } from './atomicFile.ts';
import {
  POD_FILE,
  removePod,
  touchPodsDirectory,
  stateFoldersOf,
  type PodOwner,
  type ProcessPodSpec,
  type RunnerExit,
  type RunnerStarted,
} from './podDirectory.ts';
import { identify, killLeftovers, POD_UID_VARIABLE, sendSignal } from './processIdentity.ts';
import { remainingGraceMs, type StopRequest } from './stopRequest.ts';

/** Interval between two reads of stop.json (ms). */
const REREAD_EVERY_MS = 1_000;
/**
 * Time between writing the exit file and removing a deleted pod (ms), in which watchers can read
 * how it ended.
 */
const LINGER_MS = 500;
/** Maximum delay of Node's timers (ms). A longer grace period is checked again after it. */
const MAX_TIMER_MS = 2 ** 31 - 1;

const folder = process.cwd();
let child: ChildProcess | undefined;
let stop: StopRequest | undefined;
let killTimer: NodeJS.Timeout | undefined;
let shuttingDown = false;
let finished = false;
let spec: ProcessPodSpec;

/**
 * Applies stop.json: SIGTERM once, and SIGKILL at the deadline, which may have become earlier since
 * the last read.
 */
async function applyStopRequest(): Promise<void> {
  if (finished) return;
  if (await podDirectoryDeleted()) {
    // The pod's directory was removed by force. Its end is not observed any more.
    if (child?.pid !== undefined) sendSignal(-child.pid, 'SIGKILL');
    await killLeftovers(spec.uid);
    process.exit(0);
  }
  const wanted = await readJson<StopRequest>(POD_FILE.stopRequest);
  if (wanted !== undefined) stopRunner(wanted);
}

function stopRunner(wanted: StopRequest): void {
  if (child?.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
  const group = -child.pid;
  const leftMs = remainingGraceMs(wanted, Date.now());
  const first = stop === undefined;
  if (!first && stop?.deadline === wanted.deadline) return;
  stop = wanted;
  // To the whole group, and only once, because a job may remove its handler after the first signal.
  if (first && leftMs > 0) sendSignal(group, 'SIGTERM');
  scheduleKill(group);
}

function scheduleKill(group: number): void {
  clearTimeout(killTimer);
  const leftMs = stop === undefined ? 0 : remainingGraceMs(stop, Date.now());
  if (leftMs === 0) sendSignal(group, 'SIGKILL');
  else killTimer = setTimeout(() => scheduleKill(group), Math.min(leftMs, MAX_TIMER_MS));
}

async function onSignal(): Promise<void> {
  await applyStopRequest();
  if (
    stop !== undefined ||
    finished ||
    (await readJson<StopRequest>(POD_FILE.stopRequest)) !== undefined
  )
    return;
  // Nothing is running yet: the pod is lost and was never started.
  if (child === undefined) process.exit(143);
  shuttingDown = true;
  const nowMs = Date.now();
  stopRunner({
    at: new Date(nowMs).toISOString(),
    deadline: new Date(nowMs + spec.terminationGracePeriodSeconds * 1000).toISOString(),
  });
}

async function podDirectoryDeleted(): Promise<boolean> {
  try {
    await access(POD_FILE.spec);
    return false;
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return true;
    throw error;
  }
}

function startRunner(
  env: NodeJS.ProcessEnv,
  log: number,
): { readonly pid?: number; readonly ended: Promise<Pick<RunnerExit, 'code' | 'message'>> } {
  const [command, ...args] = spec.command as [string, ...string[]];
  // Exit codes of POSIX shells: 127 for not found, 126 for found but not executable.
  const notStarted = (error: unknown): Pick<RunnerExit, 'code' | 'message'> => {
    const code = (error as NodeJS.ErrnoException).code ?? 'unknown error';
    return { code: code === 'ENOENT' ? 127 : 126, message: `cannot start ${command}: ${code}` };
  };
  try {
    const spawned = spawn(command, args, {
      cwd: join(folder, POD_FILE.work),
      env,
      detached: true,
      stdio: ['ignore', log, log],
    });
    child = spawned;
    const ended = new Promise<Pick<RunnerExit, 'code' | 'message'>>((resolve) => {
      spawned.once('error', (error) => resolve(notStarted(error)));
      spawned.once('exit', (code, signal) => {
        // As in a container, no process outlives the first one. The group ID is still valid: Node
        // has reaped its leader just now, and Linux and macOS assign PIDs in sequence.
        if (spawned.pid !== undefined) sendSignal(-spawned.pid, 'SIGKILL');
        resolve(
          signal === null
            ? { code: code ?? 1 }
            : { code: 128 + constants.signals[signal], message: `ended by ${signal}` },
        );
      });
    });
    return { ...omitUndefined({ pid: spawned.pid }), ended };
  } catch (error) {
    // Node emits some failures of spawn(2) and throws the others (E2BIG, ENOEXEC).
    return { ended: Promise.resolve(notStarted(error)) };
  }
}

/** Starts the command and waits for its end. */
async function run(): Promise<RunnerExit> {
  const secretEnv = (await readJson<Record<string, string>>(POD_FILE.secretEnv)) ?? {};
  await mkdir(POD_FILE.work, { recursive: true, mode: 0o700 });
  const log = await open(POD_FILE.output, 'a', 0o600);
  // Variables of Holdfast come last, because they replace others of the same name.
  const started = startRunner(
    { ...process.env, ...spec.env, ...secretEnv, [POD_UID_VARIABLE]: spec.uid },
    log.fd,
  );
  if (started.pid !== undefined) {
    const record: RunnerStarted = {
      process: await identify(started.pid),
      at: new Date().toISOString(),
    };
    await replaceFile(POD_FILE.started, JSON.stringify(record));
    await touchPodsDirectory(folder);
  }
  await unlink(POD_FILE.secretEnv).catch(ignoreMissing);
  await log.close();
  // Checks for a deletion that was requested during the start, and then every second. A failed
  // check must not end the job, because the next one may succeed.
  await applyStopRequest().catch(logError);
  const rereading = setInterval(() => void applyStopRequest().catch(logError), REREAD_EVERY_MS);
  const { code, message } = await started.ended;
  clearInterval(rereading);
  clearTimeout(killTimer);
  await killLeftovers(spec.uid).catch(logError);
  finished = true;
  return omitUndefined({
    code,
    finishedAt: new Date().toISOString(),
    message,
    reason: shuttingDown ? ('Shutdown' as const) : undefined,
  });
}

/**
 * Writes the exit file. Without it the end of the runner is unknown, so the write is retried until
 * it succeeds, for example while the disk is full.
 */
async function writeExit(exit: RunnerExit): Promise<void> {
  for (let written = false; !written;) {
    try {
      await replaceFile(POD_FILE.exit, JSON.stringify(exit));
      written = true;
    } catch (error) {
      if (await podDirectoryDeleted()) process.exit(0);
      logError(error);
      await delay(REREAD_EVERY_MS);
    }
  }
  await touchPodsDirectory(folder);
}

async function main(): Promise<void> {
  const found = await readJson<ProcessPodSpec>(POD_FILE.spec);
  if (found === undefined) return;
  spec = found;
  const owner: PodOwner = { wrapper: await identify(process.pid) };
  // Another wrapper runs this pod, or it was deleted before a wrapper had started.
  if (!(await createFile(POD_FILE.owner, JSON.stringify(owner)))) return;
  for (const signal of ['SIGTERM', 'SIGINT'] as const)
    process.on(signal, () => void onSignal().catch(logError));
  process.on('SIGHUP', () => undefined);
  if ((await readJson<StopRequest>(POD_FILE.stopRequest)) === undefined) {
    await writeExit(await run());
    // A deletion writes stop.json before it looks for the exit file. Here stop.json is read after
    // the exit file is written. So one of the two sees both files.
    if ((await readJson<StopRequest>(POD_FILE.stopRequest)) === undefined) return;
    await delay(LINGER_MS);
  }
  await removePod(stateFoldersOf(folder), spec.name, spec.uid);
}

function ignoreMissing(error: unknown): void {
  if (!hasCode(error, 'ENOENT')) throw error;
}

/** Writes to wrapper.log, which the next observer of a lost pod passes to the worker's log. */
function logError(error: unknown): void {
  process.stderr.write(
    `${new Date().toISOString()} ${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`,
  );
}

main().catch(async (error: unknown) => {
  // If the directory is missing, it was removed by force, and there is nothing to report. Otherwise
  // the pod is lost, and an observer will find it.
  const removed = hasCode(error, 'ENOENT') && (await podDirectoryDeleted());
  if (!removed) logError(error);
  if (child?.pid !== undefined && child.exitCode === null && child.signalCode === null)
    sendSignal(-child.pid, 'SIGKILL');
  process.exit(removed ? 0 : 1);
});
