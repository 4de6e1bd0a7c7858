/** The JSON Schemas of user-written files: they accept the same as the commands and the worker, and editors find them. */
import { globSync, readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { expect, test } from '@jest/globals';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { podPolicySchema } from '../../activities/compute/kubernetes/podPolicy/podPolicy.ts';
import { parseRunnerInput } from '../../core/input/runner.ts';
import { parseAllDocuments } from 'yaml';
import { schemaFiles } from '../../tools/schemas/schemaFiles.ts';
import { runCli } from '../support/cli.ts';
import { PROJECT } from '../support/markdown.ts';

async function accepts(command: readonly string[], document: unknown): Promise<boolean> {
  const { stdout, status } = await runCli([...command, 'schema']);
  expect(status).toBe(0);
  return new Ajv2020({ strict: false }).compile(JSON.parse(stdout) as object)(document);
}

const RUNNER = {
  organization: 'acme',
  labels: ['linux'],
  timeouts: { jobTimeout: '2h' },
  pod: { spec: { nodeSelector: { a: 'b' } } },
};

test.each<[what: string, document: object, accepted: boolean]>([
  ['a runner', RUNNER, true],
  ['an unknown field', { ...RUNNER, organisation: 'acme' }, false],
  ['an unknown timeout', { ...RUNNER, timeouts: { job: '2h' } }, false],
  ['an invalid label', { ...RUNNER, labels: [1] }, false],
])('of a runner: %s', async (_what, document, accepted) => {
  expect(await accepts(['runner'], document)).toBe(accepted);
  expect(parseRunnerInput(document).ok).toBe(accepted);
});

test.each<[what: string, document: object, accepted: boolean]>([
  ['nothing', {}, true],
  [
    'a policy',
    {
      images: ['ghcr.io/acme/*'],
      host: ['network'],
      privileged: true,
      resources: { cpu: '8', memory: '32Gi' },
    },
    true,
  ],
  ['an unknown field', { image: ['a'] }, false],
  ['an invalid host feature', { host: ['all'] }, false],
  ['an invalid quantity', { resources: { memory: 'much' } }, false],
])('of a pod policy: %s', async (_what, document, accepted) => {
  expect(await accepts(['pod-policy'], document)).toBe(accepted);
  expect(podPolicySchema.safeParse(document).success).toBe(accepted);
});

test('a pod policy for the API server still needs the account, by name', async () => {
  const { status, stderr } = await runCli(['pod-policy']);
  expect(status).toBe(2);
  expect(stderr).toContain('--service-account');
});

test.each(schemaFiles().map(({ path, text }) => [basename(path), path, text]))(
  'schemas/%s matches the output of the command (if not, run "npm run schemas")',
  (_name, path, text) => {
    expect(readFileSync(path, 'utf8')).toBe(text);
  },
);

test.each(globSync('examples/*/*.yaml', { cwd: PROJECT }).toSorted())(
  '%s names its schema for editors, and matches it',
  (file) => {
    const text = readFileSync(join(PROJECT, file), 'utf8');
    const [, schema = 'none'] = /^# yaml-language-server: \$schema=(\S+)\n/.exec(text) ?? [];
    const validate = new Ajv2020({ strict: false }).compile(
      JSON.parse(readFileSync(join(PROJECT, dirname(file), schema), 'utf8')) as object,
    );
    for (const document of parseAllDocuments(text, { merge: true }))
      expect([validate(document.toJS()), validate.errors]).toEqual([true, null]);
  },
);
