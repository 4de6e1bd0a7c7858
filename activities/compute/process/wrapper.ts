/**
 * Runs one runner process for a pod folder, outside the worker: in a session of its own it survives the worker's SIGKILL, its
 * process group's, and the closing of its terminal. It is to a process pod what the kubelet is to a pod.
 *
 * Started with the pod's folder as working directory, where all its state is (podDirectory.ts). It never reads a path from the
 * outside, so a folder that was renamed away cannot be confused with a new one of the same name.
 *
 * Signals: SIGTERM means "look at stop.json", which is also looked at each second in case the signal was lost. SIGTERM
 * without a stop.json, or SIGINT, is the machine going down: the runner gets its SIGTERM and its grace, and the pod stays,
 * ended, for the workflow to see. If the wrapper itself is killed, the pod is lost: the next observer kills what is left of
 * it and removes it (observePods.ts).
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

const REREAD_EVERY_MS = 1_000;
/** Between the exit file and the removal of a deleted pod: time for the watchers to read how it ended. */
const LINGER_MS = 500;
/** The longest delay that Node's timers take; a longer grace is looked at again then. */
const MAX_TIMER_MS = 2 ** 31 - 1;

const folder = process.cwd();
let child: ChildProcess | undefined;
let stop: StopRequest | undefined;
let killTimer: NodeJS.Timeout | undefined;
let shuttingDown = false;
let finished = false;
let spec: ProcessPodSpec;

/** Acts on stop.json: SIGTERM once, SIGKILL at the deadline, which may have been brought forward since the last look. */
async function applyStopRequest(): Promise<void> {
  if (finished) return;
  if (await podDirectoryDeleted()) {
    // Somebody removed the pod by force. Nobody waits for its end any more.
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
  // To the whole group, and once: a job may drop its handler after the first.
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
  // Nothing runs yet: the pod is lost, and was never started.
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
  // The codes of POSIX shells: 127 not found, 126 found but not executable.
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
        // As with a container, nothing outlives its first process. The group's id is still ours: Node has reaped its leader in
        // this very moment, and Linux and macOS give pids in turn.
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
    // Node emits some failures of spawn(2), and throws the others (E2BIG, ENOEXEC).
    return { ended: Promise.resolve(notStarted(error)) };
  }
}

/** Starts the command and waits for its end. */
async function run(): Promise<RunnerExit> {
  const secretEnv = (await readJson<Record<string, string>>(POD_FILE.secretEnv)) ?? {};
  await mkdir(POD_FILE.work, { recursive: true, mode: 0o700 });
  const log = await open(POD_FILE.output, 'a', 0o600);
  // What Holdfast sets comes last: it replaces entries of the same name.
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
  // A deletion requested while it started; and from now on each second. A look that fails must not cost a job: the next may not.
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

/** Without this file nobody learns how the runner ended, so it is tried until it is written, as on a disk that is full for a while. */
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
  // Another wrapper runs this pod, or it was deleted before one had started.
  if (!(await createFile(POD_FILE.owner, JSON.stringify(owner)))) return;
  for (const signal of ['SIGTERM', 'SIGINT'] as const)
    process.on(signal, () => void onSignal().catch(logError));
  process.on('SIGHUP', () => undefined);
  if ((await readJson<StopRequest>(POD_FILE.stopRequest)) === undefined) {
    await writeExit(await run());
    // The deletion is written before its author looks for the exit file, and looked for here after the exit file is written:
    // one of the two sees both.
    if ((await readJson<StopRequest>(POD_FILE.stopRequest)) === undefined) return;
    await delay(LINGER_MS);
  }
  await removePod(stateFoldersOf(folder), spec.name, spec.uid);
}

function ignoreMissing(error: unknown): void {
  if (!hasCode(error, 'ENOENT')) throw error;
}

/** Into wrapper.log, which the next observer of a lost pod passes to the worker's log. */
function logError(error: unknown): void {
  process.stderr.write(
    `${new Date().toISOString()} ${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`,
  );
}

main().catch(async (error: unknown) => {
  // The folder went away under it: removed by force, nothing to tell. Else the pod is lost, and an observer will find it so.
  const removed = hasCode(error, 'ENOENT') && (await podDirectoryDeleted());
  if (!removed) logError(error);
  if (child?.pid !== undefined && child.exitCode === null && child.signalCode === null)
    sendSignal(-child.pid, 'SIGKILL');
  process.exit(removed ? 0 : 1);
});
