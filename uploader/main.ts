/**
 * `uploader` runs next to a step, `uploader restore` before it. Its output is one line of JSON,
 * which is also the container's termination message.
 */
import { existsSync, writeFileSync } from 'node:fs';
import { restoreSharedDir } from './restoreSharedDir.ts';
import { restoreOptions, uploaderOptions } from './settings.ts';
import { terminationMessage } from './terminationMessage.ts';
import { runUploader } from './uploader.ts';
import { errorMessage } from '../core/domain/errorMessage.ts';

/** Path at which the kubelet reads a container's termination message. */
const TERMINATION_LOG = '/dev/termination-log';

async function main(): Promise<object> {
  // Steps have different users, and so have their uploaders: files that one has created in the
  // store must be writable for the next.
  process.umask(0);
  if (process.argv[2] === 'restore') {
    const { records, store, sources } = await restoreOptions(process.env);
    return { from: (await restoreSharedDir(records, store, sources)) ?? null };
  }
  const terminationRequested = new AbortController();
  // The kubelet signals all containers of the pod at once. The step has its own grace period, and
  // the uploader the rest of the pod's.
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGQUIT'] as const)
    process.on(signal, () => terminationRequested.abort());
  const record = await runUploader(await uploaderOptions(process.env), terminationRequested.signal);
  if (record.sharedDirFault !== undefined) process.exitCode = 1;
  return record;
}

function say(record: object): void {
  process.stdout.write(`${JSON.stringify(record)}\n`);
  if (existsSync(TERMINATION_LOG)) writeFileSync(TERMINATION_LOG, terminationMessage(record));
}

main().then(say, (error: unknown) => {
  say({ error: errorMessage(error) });
  process.exit(1);
});
