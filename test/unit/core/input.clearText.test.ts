import { describe, expect, test } from '@jest/globals';
import type { RunnerInput } from '../../../core/contract/index.ts';
import { plaintextWarnings } from '../../../core/input/plaintext.ts';
import { runCli } from '../../support/cli.ts';

const pod = (...containers: object[]): Pick<RunnerInput, 'pod'> => ({
  pod: { spec: { containers } },
});

describe('unencrypted secrets in an input', () => {
  test.each<[string, Parameters<typeof plaintextWarnings>[0], string[]]>([
    ['no variables', {}, []],
    ['a variable', { env: { TOKEN: 'hunter2' } }, ['TOKEN']],
    [
      'names that do not look like secrets',
      { env: { DOCKER_HOST: 'unix:///var/run/docker.sock', PATH: '/bin', TOKEN_FILE: '/token' } },
      [],
    ],
    [
      'names that look like secrets',
      { env: { npm_token: 'a', AWS_ACCESS_KEY_ID: 'b', DB_PASSWORD: 'c', MY_SECRETS: 'd' } },
      ['npm_token', 'AWS_ACCESS_KEY_ID', 'DB_PASSWORD', 'MY_SECRETS'],
    ],
    ['an empty value', { env: { TOKEN: '' } }, []],
    ['null instead of lists', { pod: { spec: { containers: null, initContainers: 'x' } } }, []],
    ['null instead of items', pod({ name: 'x', env: [null] }, { name: 'y', env: null }), []],
    [
      'a variable of a container in the template',
      pod({ name: 'runner', env: [{ name: 'PASSWORD', value: 'hunter2' }] }),
      ['PASSWORD'],
    ],
    [
      'a variable with a value from a Secret',
      pod({
        name: 'runner',
        env: [{ name: 'PASSWORD', valueFrom: { secretKeyRef: { name: 'ci', key: 'password' } } }],
      }),
      [],
    ],
    [
      'a variable of an init container',
      {
        pod: {
          spec: {
            initContainers: [{ name: 'first', env: [{ name: 'API_KEY', value: 'hunter2' }] }],
          },
        },
      },
      ['API_KEY'],
    ],
    [
      'the same name twice',
      {
        env: { A_SECRET: 'hunter2' },
        ...pod({ name: 'x', env: [{ name: 'A_SECRET', value: 'hunter2' }] }),
      },
      ['A_SECRET'],
    ],
  ])('%s', (_what, input, names) => {
    const warnings = plaintextWarnings(input);
    const warning: unknown = expect.stringContaining(`env: ${names.join(', ')} `);
    expect(warnings).toEqual(names.length === 0 ? [] : [warning]);
    expect(warnings.join()).not.toContain('hunter2');
  });

  test('the warning names the fix, and its length does not grow with the number of secrets', () => {
    const [warning = ''] = plaintextWarnings({
      env: Object.fromEntries(Array.from({ length: 30 }, (_, i) => [`KEY${i}`, 'x'])),
    });
    for (const part of ['KEY19 and 10 more', 'valueFrom.secretKeyRef', 'HOLDFAST_CODEC_KEY_FILE'])
      expect(warning).toContain(part);
    expect(warning).not.toContain('KEY20');
  });
});

test('"runner start" warns before it starts the workflow, and does not warn if payloads are encrypted', async () => {
  const start = async (env: Record<string, string>): Promise<string> =>
    (
      await runCli(
        ['runner', 'start', '--org', 'acme', '--env', 'TOKEN=hunter2', '--address', '127.0.0.1:1'],
        env,
      )
    ).stderr;
  expect(await start({})).toMatch(/^warning: env: TOKEN .*\nerror: cannot reach/);
  expect(await start({ HOLDFAST_CODEC_KEY_FILE: '/nowhere/keys' })).toMatch(
    /^error: HOLDFAST_CODEC_KEY_FILE: cannot read \/nowhere\/keys/,
  );
});
