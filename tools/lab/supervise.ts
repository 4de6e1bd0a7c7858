import { dirname } from 'node:path';
import { killStrays } from './cleanUp.ts';
import type { Component, Lab } from './component.ts';
import { ComponentFailedError } from './options.ts';
import { canListen, freePort } from './ports.ts';
import { waitFor, isAlive, logTail, startDetached, stopProcess } from './process.ts';
import { resolveBinary } from './resolve.ts';
import { forgetProcess, logPath, readProcess, writeProcess, writeRecord } from './store.ts';

const REPORT_AFTER_MS = 5_000;
/**
 * Time to wait for a port that another process uses (ms). Clients know the address, so the port
 * changes only after that.
 */
const PORT_TIMEOUT_MS = 3_000;

/** Runs and answers. */
export async function isUp(lab: Lab, component: Component): Promise<boolean> {
  const identity = await readProcess(lab.dir, component.name);
  return identity !== undefined && (await isAlive(identity)) && (await component.healthy(lab));
}

/**
 * Starts one component and waits until it is ready. A healthy component keeps running.
 * @throws ComponentFailedError with the end of its log
 */
export async function startComponent(lab: Lab, component: Component): Promise<void> {
  const { name } = component;
  const old = await readProcess(lab.dir, name);
  if (old !== undefined && (await isAlive(old))) {
    // It may have been started a moment ago by an `up` that was interrupted.
    if (await waitFor(() => component.healthy(lab), 5_000)) return;
    lab.progress(`${name}: runs but does not answer; restarting it`);
    await stopProcess(old, component.stop.signal, component.stop.withinMs);
  }
  await killStrays(lab, component); // two servers on the same data would ruin it
  await assignPorts(lab, component);
  await component.prepare?.(lab);

  const binary = lab.binaries[component.binaries[0]];
  if (binary === undefined) throw new Error(`${name}: its binary was not resolved`);
  const { args, env, user } = await component.command(lab);
  const log = logPath(lab.dir, name);
  const started = performance.now();
  const identity = await startDetached(binary, args, {
    log,
    cwd: lab.dir,
    env: cleanEnvironment(lab, env),
    ...(user && { user }),
  });
  await writeProcess(lab.dir, name, identity);

  let died = false;
  let reported = started;
  const answered = await waitFor(async () => {
    died = !(await isAlive(identity));
    if (performance.now() - reported > REPORT_AFTER_MS) {
      reported = performance.now();
      lab.progress(`${name}: still starting, ${Math.round((reported - started) / 1000)} s`);
    }
    return (
      died ||
      (await (component.ready === undefined ? component.healthy(lab) : component.ready(lab)))
    );
  }, component.readyWithinMs);
  if (died || !answered) {
    await stopProcess(identity, 'SIGKILL', 5_000);
    await forgetProcess(lab.dir, name);
    const what = died
      ? 'died at its start'
      : `was not ready after ${component.readyWithinMs / 1000} s`;
    throw new ComponentFailedError(
      name,
      `${name} ${what}; fix: ${component.fix}\nend of ${log}:\n${await logTail(log)}`,
    );
  }
  await component.finish?.(lab);
  lab.progress(`${name}: ready in ${((performance.now() - started) / 1000).toFixed(1)} s`);
}

/** Stops one component if it runs. */
export async function stopComponent(
  dir: string,
  component: Component,
  signal: NodeJS.Signals = component.stop.signal,
): Promise<void> {
  const identity = await readProcess(dir, component.name);
  if (identity === undefined) return;
  await stopProcess(identity, signal, component.stop.withinMs);
  await forgetProcess(dir, component.name);
}

/**
 * Finds the binaries of components, one after the other, because a build uses all cores. Changes
 * `lab.binaries`.
 */
export async function resolveBinaries(lab: Lab, components: readonly Component[]): Promise<void> {
  for (const name of new Set(components.flatMap((component) => component.binaries))) {
    lab.binaries[name] ??= await resolveBinary(name, { progress: lab.progress });
  }
}

/**
 * Chooses the ports of a component once. They change only if another process took them while the
 * component was down.
 */
async function assignPorts(lab: Lab, component: Component): Promise<void> {
  for (const key of component.ports) {
    const port = lab.record.ports[key];
    if (port !== undefined && (await waitFor(() => canListen(port), PORT_TIMEOUT_MS))) continue;
    lab.record.ports[key] = await freePort();
    if (port !== undefined)
      lab.progress(`${component.name}: port ${port} is taken, now ${lab.record.ports[key]}`);
  }
  await writeRecord(lab.dir, lab.record);
}

/**
 * Returns the environment of components, which has only PATH from the caller. A KUBECONFIG or a
 * Temporal profile there does not apply to the lab.
 */
function cleanEnvironment(lab: Lab, extra: Record<string, string> | undefined): NodeJS.ProcessEnv {
  // Components call other programs of the same packages: containerd calls its shim and runc.
  const folders = new Set(Object.values(lab.binaries).map((path) => dirname(path)));
  const path = [
    ...folders,
    process.env['PATH'] ?? '',
    '/usr/sbin',
    '/usr/bin',
    '/sbin',
    '/bin',
  ].join(':');
  return { PATH: path, HOME: lab.dir, LANG: 'C.UTF-8', ...extra };
}
