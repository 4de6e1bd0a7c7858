import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdir, open, rename, rm, writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ComputeError } from '../../ports/computeError.ts';
import type { Registration } from '../../ports/ciServer.ts';
import { podName } from '../naming.ts';
import { hasCode, replaceFile } from './atomicFile.ts';
import { makeClaimFolders } from './claimDirectories.ts';
import type { ObservePods } from './observePods.ts';
import {
  makeStateFolders,
  POD_FILE,
  readPod,
  type PodRecord,
  type ProcessPodSpec,
  type StateDirectories,
} from './podDirectory.ts';
import { baseEnvironment, validateEnvironment } from './runnerCommand.ts';
import type { PodRequest } from '../../../core/domain/pod.ts';

const WRAPPER = fileURLToPath(
  new URL(import.meta.url.endsWith('.ts') ? './wrapper.ts' : './wrapper.js', import.meta.url),
);

/**
 * Creates the pod's directory and starts its wrapper, unless an earlier attempt or another worker
 * has done so.
 * @throws ComputeError, or an error of the operating system
 */
export async function startPod(
  folders: StateDirectories,
  observe: ObservePods,
  request: PodRequest,
  command: readonly string[],
  registration: Registration | undefined,
): Promise<PodRecord> {
  const name = podName(request.identity);
  await makeStateFolders(folders);
  const secretEnv = validateEnvironment('registration', registration?.env);
  const env = {
    ...validateEnvironment('env', request.env),
    ...(await makeClaimFolders(folders, request)),
  };
  let pod = (await observe([name])).get(name);
  if (pod === undefined) {
    const { labels, terminationGracePeriodSeconds, identity } = request;
    const createdAt = new Date().toISOString();
    await createPodDirectory(
      folders,
      {
        name,
        uid: randomUUID(),
        workflowId: identity.workflowId,
        node: hostname(),
        createdAt,
        command,
        env,
        labels,
        terminationGracePeriodSeconds,
      },
      secretEnv,
    );
    // Created here, or by another worker that was faster.
    pod = await readPod(folders, name);
    if (pod === undefined)
      throw new ComputeError('unavailable', `${name} was removed while it was being created`);
  }
  // Also if another process created the directory, because it may have died before it started a
  // wrapper. Of several wrappers exactly one continues.
  if (pod.owner === undefined) await startWrapper(join(folders.pods, name), name);
  return pod;
}

/**
 * Moves a complete directory to the pod's path, unless one exists: rename(2) does not replace a
 * directory that is not empty.
 */
async function createPodDirectory(
  folders: StateDirectories,
  spec: ProcessPodSpec,
  secretEnv: Readonly<Record<string, string>>,
): Promise<void> {
  const built = join(folders.trash, `new-${spec.uid}`);
  await mkdir(join(built, POD_FILE.work), { recursive: true, mode: 0o700 });
  await writeFile(join(built, POD_FILE.secretEnv), JSON.stringify(secretEnv), {
    mode: 0o600,
    flush: true,
  });
  await replaceFile(join(built, POD_FILE.spec), JSON.stringify(spec));
  try {
    await rename(built, join(folders.pods, spec.name));
  } catch (error) {
    await rm(built, { recursive: true, force: true });
    if (!hasCode(error, 'ENOTEMPTY', 'EEXIST')) throw error;
  }
}

async function startWrapper(folder: string, name: string): Promise<void> {
  const log = await open(join(folder, POD_FILE.wrapperLog), 'a', 0o600);
  try {
    // The name is for people who read the output of ps. The worker's own environment contains
    // secrets, so the wrapper gets a clean one.
    const wrapper = spawn(process.execPath, [WRAPPER, name], {
      cwd: folder,
      env: baseEnvironment(process.env),
      detached: true,
      stdio: ['ignore', log.fd, log.fd],
    });
    wrapper.unref();
    await once(wrapper, 'spawn');
  } finally {
    await log.close();
  }
}
