import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { checkSdkCopies } from '../../../worker/plugin/sdkCopies.ts';

let folder: string;
let own: string;
let nested: string;

/** Creates a copy of the SDK's worker package and returns the path of its main file. */
async function copy(at: string, version: string): Promise<string> {
  const root = join(folder, at, 'node_modules/@temporalio/worker');
  await mkdir(join(root, 'lib'), { recursive: true });
  await writeFile(join(root, 'package.json'), JSON.stringify({ version }));
  return join(root, 'lib/index.js');
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'holdfast-copies-'));
  own = await copy('.', '1.23.0');
  nested = await copy('node_modules/holdfast', '1.24.0');
});
afterAll(async () => await rm(folder, { recursive: true, force: true }));

test('one copy of the Temporal SDK is accepted, with any other packages', () => {
  checkSdkCopies([own, join(folder, 'node_modules/other/lib/index.js'), `${own}.map`]);
  checkSdkCopies([]);
});

test('two copies are an error that names both versions and folders', () => {
  const check = (): void => checkSdkCopies([own, nested]);
  for (const part of ['1.23.0 in ', '1.24.0 in ', join(folder, 'node_modules/holdfast')])
    expect(check).toThrow(part);
});
