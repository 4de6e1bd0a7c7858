/** `uploader`: beside a step. `uploader restore`: before it. What it has to say is one line of JSON, also as the container's termination message. */
import { existsSync, writeFileSync } from 'node:fs';
import { restoreSharedDir } from './restoreSharedDir.ts';
import { restoreOptions, uploaderOptions } from './settings.ts';
import { terminationMessage } from './terminationMessage.ts';
import { runUploader } from './uploader.ts';

/** Where the kubelet looks for a container's termination message. */
const TERMINATION_LOG = '/dev/termination-log';

async function main(): Promise<object> {
  // Steps have users of their own, and so have their uploaders: what one has made in the store the next may add to.
  process.umask(0);
  if (process.argv[2] === 'restore') {
    const { records, store, sources } = await restoreOptions(process.env);
    return { from: (await restoreSharedDir(records, store, sources)) ?? null };
  }
  const terminationRequested = new AbortController();
  // The kubelet signals every container of the pod at once; the step has its grace, and this one the rest of the pod's.
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
  say({ error: error instanceof Error ? error.message : String(error) });
  process.exit(1);
});
