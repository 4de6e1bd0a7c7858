/** Packages that take long to load are loaded only by the processes that need them, and only on use. */
import { join } from 'node:path';
import { build } from 'esbuild';
import { expect, test } from '@jest/globals';
import { PROJECT } from '../support/markdown.ts';

/** The packages that a file imports statically. @param late - also those that it may load later */
async function packagesOf(entry: string, late = false): Promise<string[]> {
  const { metafile } = await build({
    entryPoints: [join(PROJECT, entry)],
    absWorkingDir: PROJECT,
    bundle: true,
    platform: 'node',
    format: 'esm',
    packages: 'external',
    write: false,
    outdir: '/unused',
    metafile: true,
    logLevel: 'silent',
  });
  const packages = new Set<string>();
  const seen = new Set<string>();
  const visit = (file: string): void => {
    if (seen.has(file)) return;
    seen.add(file);
    for (const { path, external, kind } of metafile.inputs[file]?.imports ?? []) {
      if (kind === 'dynamic-import' && !late) continue;
      if (external === true) packages.add(path);
      else visit(path);
    }
  };
  visit(entry);
  return [...packages];
}

const ofS3 = (packages: readonly string[]): string[] =>
  packages.filter((name) => name.startsWith('@aws-sdk/')).toSorted();

test.each([
  'worker/main.ts',
  'worker/webhook/startWebhook.ts',
  'cli/main.ts',
  'worker/index.ts',
  'uploader/main.ts',
])('the SDK for buckets is not loaded with %s', async (entry) => {
  const packages = await packagesOf(entry);
  expect(packages.length).toBeGreaterThan(0);
  expect(ofS3(packages)).toEqual([]);
});

test('the uploader and the command load it if a bucket is configured; workers, webhooks and workflows never do', async () => {
  expect(ofS3(await packagesOf('uploader/main.ts', true))).toEqual([
    '@aws-sdk/client-s3',
    '@aws-sdk/lib-storage',
  ]);
  expect(ofS3(await packagesOf('cli/main.ts', true))).toEqual([
    '@aws-sdk/client-s3',
    '@aws-sdk/lib-storage',
  ]);
  for (const entry of ['worker/main.ts', 'worker/webhook/startWebhook.ts', 'workflows/index.ts'])
    expect(ofS3(await packagesOf(entry, true))).toEqual([]);
});

test('the plugin loads a fixed list of packages, and none of the command, the HTTP server or the log', async () => {
  const packages = new Set(
    (await packagesOf('worker/index.ts', true))
      .filter((path) => !path.startsWith('node:'))
      .map((path) => path.split('/', path.startsWith('@') ? 2 : 1).join('/'))
      // Packages of the host, and those of tracing, which is loaded if it is configured.
      .filter((name) => !/^@(temporalio|opentelemetry)\//.test(name)),
  );
  expect([...packages].toSorted()).toEqual([
    '@kubernetes/client-node',
    '@octokit/auth-app',
    '@octokit/core',
    'croner',
    'lru-cache',
    'p-map',
    'p-queue',
    'p-retry',
    'undici',
    'zod',
  ]);
});
