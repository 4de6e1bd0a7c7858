import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chmod, mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { EnvHttpProxyAgent, fetch } from 'undici';
import type { BinarySpec } from './versions.ts';

/** Short, so that a closed network costs seconds. */
const CONNECT_TIMEOUT_MS = 4_000;

/**
 * Downloads the official release of a binary to `target`, atomically, and verifies its checksum if
 * one is published. Uses the usual proxy variables.
 * @throws Error with the URL and the cause
 */
export async function download(
  spec: BinarySpec,
  target: string,
  progress: (line: string) => void,
): Promise<void> {
  if (spec.download === undefined) throw new Error(`${spec.name} is not published as a binary`);
  const fill = (text: string): string => fillPlatform(text, process.platform, process.arch);
  const url = fill(spec.download.url);
  progress(`${spec.name} ${spec.version}: downloading ${url}`);
  const content = await get(url);
  if (spec.download.checksumUrl !== undefined) {
    const list = (await get(fill(spec.download.checksumUrl))).toString('utf8');
    const actual = createHash('sha256').update(content).digest('hex');
    const expected = checksumOf(list, basename(new URL(url).pathname));
    if (actual !== expected)
      throw new Error(
        `${url}: SHA-256 is ${actual}, published is ${expected ?? 'none for this file'}`,
      );
  }
  const work = await mkdtemp(join(dirname(target), '.download-'));
  try {
    let file = join(work, 'download');
    await writeFile(file, content);
    if (spec.download.member !== undefined) {
      const member = fill(spec.download.member);
      await promisify(execFile)('tar', ['-xzf', file, '-C', work, member]);
      file = join(work, member);
    }
    await chmod(file, 0o755);
    await rename(file, target);
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}

/** Puts Go's names of the platform into a URL. */
export function fillPlatform(text: string, platform: string, arch: string): string {
  return text.replaceAll('${os}', platform).replaceAll('${arch}', arch === 'x64' ? 'amd64' : arch);
}

/**
 * Returns the checksum of a file in a published list. A list with a single checksum applies to its
 * only file.
 */
export function checksumOf(list: string, file: string): string | undefined {
  for (const line of list.split('\n')) {
    const [sum, name] = line.trim().split(/\s+\*?/);
    if (
      sum !== undefined &&
      /^[0-9a-f]{64}$/i.test(sum) &&
      (name === undefined || name === '' || basename(name) === file)
    )
      return sum.toLowerCase();
  }
  return undefined;
}

async function get(url: string): Promise<Buffer> {
  const dispatcher = new EnvHttpProxyAgent({
    connect: { timeout: CONNECT_TIMEOUT_MS },
    headersTimeout: 4 * CONNECT_TIMEOUT_MS,
  });
  try {
    const response = await fetch(url, { dispatcher });
    if (!response.ok) throw new Error(`HTTP ${response.status}`);
    return Buffer.from(await response.arrayBuffer());
  } catch (error) {
    const { message, cause } = error as Error;
    throw new Error(`${url}: ${message}${cause instanceof Error ? ` (${cause.message})` : ''}`, {
      cause: error,
    });
  } finally {
    await dispatcher.close();
  }
}
