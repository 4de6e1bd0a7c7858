import type { Client } from '@temporalio/client';
import type { NamespaceRecorder } from './namespaceRecorder.ts';
import type { WorkerProcess } from './workerProcess.ts';

/** Keys of a runner's Secret whose values allow others to act as the runner. */
const SECRET_KEYS = ['ACTIONS_RUNNER_INPUT_JITCONFIG', 'RUNNER_TOKEN'] as const;

/** Where secrets are looked for. */
interface Searched {
  readonly client: Client;
  readonly taskQueue: string;
  readonly workers: readonly WorkerProcess[];
  readonly recorder: NamespaceRecorder;
}

/**
 * Searches every workflow history, description, worker log and pod version of a world for known
 * secrets and for those of all registrations.
 * @param more - other texts, by name
 * @returns where secrets were found
 */
export async function findSecrets(
  world: Searched,
  known: readonly string[],
  more: Readonly<Record<string, string>> = {},
): Promise<string[]> {
  const secrets = [...known, ...withInnerSecrets(world.recorder.secretValues(SECRET_KEYS))];
  if (secrets.length === known.length)
    throw new Error('no registration was ever stored: there is nothing to look for');
  return await findInClear(world, secrets, more);
}

/** {@link findSecrets} for known secrets only. */
export async function findInClear(
  world: Searched,
  secrets: readonly string[],
  more: Readonly<Record<string, string>> = {},
): Promise<string[]> {
  const found: string[] = [];
  const search = (place: string, text: string): void => {
    if (secrets.some((secret) => text.includes(secret))) found.push(place);
  };
  let histories = 0;
  for await (const { workflowId, runId } of world.client.workflow.list({
    query: `TaskQueue = '${world.taskQueue}'`,
  })) {
    const handle = world.client.workflow.getHandle(workflowId, runId);
    search(`history of ${workflowId}`, readable(await handle.fetchHistory()));
    search(`description of ${workflowId}`, readable((await handle.describe()).raw));
    histories++;
  }
  if (histories === 0) throw new Error('there is no history to look into');
  for (const { pid, log, errors } of world.workers)
    search(`log of worker ${pid}`, JSON.stringify(log) + errors.join('\n'));
  for (const pod of world.recorder.podVersions) search('pod', pod);
  for (const [place, text] of Object.entries(more)) search(place, text);
  return [...new Set(found)];
}

/**
 * A JIT config is base64 of JSON of base64: the plain text of its inner files is as secret as the
 * whole.
 */
function withInnerSecrets(values: readonly string[]): string[] {
  return values.flatMap((value) => [value, ...innerToken(value)]);
}

function innerToken(jitConfig: string): string[] {
  const decode = (text: string): string => Buffer.from(text, 'base64').toString('utf8');
  try {
    const files = JSON.parse(decode(jitConfig)) as Record<string, string>;
    const { data } = JSON.parse(decode(files['.credentials'] ?? '')) as { data: { token: string } };
    return [files['.credentials'] ?? '', data.token];
  } catch {
    return []; // a registration token: no inside
  }
}

/**
 * Returns a value as JSON, with the content of every payload as text. Protobuf's own JSON has its
 * bytes in base64.
 */
export function readable(value: unknown): string {
  return JSON.stringify(value, (key, inner: unknown) => {
    if (key === 'data' && typeof inner === 'string') return fromBase64(inner);
    if (key === 'metadata' && typeof inner === 'object' && inner !== null)
      return Object.fromEntries(
        Object.entries(inner).map(([name, bytes]) => [
          name,
          typeof bytes === 'string' ? fromBase64(bytes) : bytes,
        ]),
      );
    if (inner instanceof Uint8Array) return Buffer.from(inner).toString('utf8');
    if (isSerializedBuffer(inner)) return Buffer.from(inner.data).toString('utf8');
    return inner;
  });
}

const fromBase64 = (text: string): string => Buffer.from(text, 'base64').toString('utf8');

/** `Buffer.toJSON` runs before a replacer sees the value. */
function isSerializedBuffer(value: unknown): value is { data: number[] } {
  return (
    typeof value === 'object' &&
    value !== null &&
    'type' in value &&
    value.type === 'Buffer' &&
    'data' in value
  );
}
