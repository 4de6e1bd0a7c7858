import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from '@jest/globals';
import { timeoutPolicySchema } from '../../../core/input/timeoutPolicy.ts';
import { readDocument } from '../../../worker/settings/settingDocument.ts';
import type { ConfigProblem } from '../../../worker/settings/configError.ts';

const folder = mkdtempSync(join(tmpdir(), 'hf-timeouts-'));
afterAll(() => rmSync(folder, { recursive: true }));
const file = (text: string): string => {
  const path = join(folder, `${Math.random()}.yaml`);
  writeFileSync(path, text);
  return path;
};

function read(set: Record<string, string>): { policy: object; problems: string[] } {
  const problems: ConfigProblem[] = [];
  return {
    policy:
      readDocument(
        set,
        { inline: 'HOLDFAST_TIMEOUTS', file: 'HOLDFAST_TIMEOUTS_FILE' },
        timeoutPolicySchema,
        problems,
      ) ?? {},
    problems: problems.map(({ setting, message }) => `${setting}: ${message}`),
  };
}

const POLICY = {
  default: { jobTimeout: '6h', jobTimeoutCap: '12h' },
  scopes: {
    acme: { podUnscheduled: '1m', podPending: '2m', registration: '3m' },
    'acme/web': { signalTimeout: '10s' },
    'enterprises/big': { cleanupTimeout: '5s' },
  },
};

test.each([
  ['nothing', {}, {}],
  ['the setting', { HOLDFAST_TIMEOUTS: JSON.stringify(POLICY) }, POLICY],
  [
    'a file in YAML',
    { HOLDFAST_TIMEOUTS_FILE: file('default:\n  jobTimeout: 6h\n') },
    { default: { jobTimeout: '6h' } },
  ],
  [
    'the setting takes precedence over the file',
    { HOLDFAST_TIMEOUTS: '{}', HOLDFAST_TIMEOUTS_FILE: '/does/not/exist' },
    {},
  ],
])('%s', (_what, set, policy) => {
  expect(read(set)).toEqual({ policy, problems: [] });
});

test.each<[string, string[]]>([
  ['{', ['it is neither YAML nor JSON: check its syntax']],
  ['[]', ['input Invalid input: expected object, received array']],
  ['{"default": {"idle": "1m"}}', ['default.idle is not a known field; check the spelling']],
  [
    '{"default": {"jobTimeout": "soon"}, "scopes": {"acme": {"registration": "0s"}}}',
    [
      'default.jobTimeout is not a duration; write for example "30s", "10m" or "1h30m"',
      'scopes.acme.registration is not a duration; write for example "30s", "10m" or "1h30m"',
    ],
  ],
  [
    '{"scopes": {"a/b/c": {}}}',
    [
      'scopes.a/b/c must be an organization ("acme"), a repository ("acme/web") or "enterprises/NAME"',
    ],
  ],
])('all errors of HOLDFAST_TIMEOUTS=%s are reported', (value, problems) => {
  expect(read({ HOLDFAST_TIMEOUTS: value }).problems).toEqual(
    problems.map((problem) => `HOLDFAST_TIMEOUTS: ${problem}`),
  );
});

test('very long names of fields are cut in the message', () => {
  const long = 'a'.repeat(3_000);
  const told = `HOLDFAST_TIMEOUTS: ${'a'.repeat(253)}… is not a known field; check the spelling`;
  expect(read({ HOLDFAST_TIMEOUTS: JSON.stringify({ [long]: 1 }) }).problems).toEqual([told]);
  expect(
    read({ HOLDFAST_TIMEOUTS: JSON.stringify({ scopes: { [long]: { idle: '1m' } } }) }).problems,
  ).toEqual([expect.stringMatching(/^HOLDFAST_TIMEOUTS: scopes\.a{253}…/)]);
});

test('a missing file', () => {
  expect(read({ HOLDFAST_TIMEOUTS_FILE: '/does/not/exist' }).problems).toEqual([
    'HOLDFAST_TIMEOUTS_FILE: cannot read /does/not/exist (ENOENT): check the path and its permissions',
  ]);
});
