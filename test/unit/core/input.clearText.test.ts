import { describe, expect, test } from '@jest/globals';
import type { RunnerInput } from '../../../core/contract/index.ts';
import { plaintextWarnings } from '../../../core/input/plaintext.ts';
import { runCli } from '../../support/cli.ts';

const pod = (...containers: object[]): Pick<RunnerInput, 'pod'> => ({
  pod: { spec: { containers } },
});

describe('what lies in Temporal in clear', () => {
  test.each<[string, Parameters<typeof plaintextWarnings>[0], string[]]>([
    ['no variables', {}, []],
    ['a variable', { env: { TOKEN: 'hunter2' } }, ['TOKEN']],
    ['an empty one', { env: { TOKEN: '' } }, []],
    [
      'one of a container in the template',
      pod({ name: 'runner', env: [{ name: 'PASSWORD', value: 'hunter2' }] }),
      ['PASSWORD'],
    ],
    [
      'one that is taken from a Secret',
      pod({
        name: 'runner',
        env: [{ name: 'PASSWORD', valueFrom: { secretKeyRef: { name: 'ci', key: 'password' } } }],
      }),
      [],
    ],
    [
      'of an init container',
      {
        pod: {
          spec: { initContainers: [{ name: 'first', env: [{ name: 'SEED', value: 'hunter2' }] }] },
        },
      },
      ['SEED'],
    ],
    [
      'the same name twice',
      { env: { A: 'hunter2' }, ...pod({ name: 'x', env: [{ name: 'A', value: 'hunter2' }] }) },
      ['A'],
    ],
  ])('%s', (_what, input, names) => {
    const warnings = plaintextWarnings(input);
    expect(warnings).toHaveLength(names.length === 0 ? 0 : 1);
    if (names.length > 0)
      expect(warnings[0]).toContain(
        `env: what is written for ${names.join(', ')} lies in Temporal in clear; `,
      );
    expect(warnings.join()).not.toContain('hunter2');
  });

  test('the warning says the way out, and does not grow with their number', () => {
    const [warning = ''] = plaintextWarnings({
      env: Object.fromEntries(Array.from({ length: 30 }, (_, i) => [`V${i}`, 'x'])),
    });
    for (const part of [
      'V19 and 10 more lies',
      'valueFrom.secretKeyRef',
      'HOLDFAST_CODEC_KEY_FILE',
    ])
      expect(warning).toContain(part);
    expect(warning).not.toContain('V20');
  });
});

test('"runner start" says so before it starts anything, and does not where all is encrypted', async () => {
  const start = async (env: Record<string, string>): Promise<string> =>
    (
      await runCli(
        ['runner', 'start', '--org', 'acme', '--env', 'TOKEN=hunter2', '--address', '127.0.0.1:1'],
        env,
      )
    ).stderr;
  expect(await start({})).toMatch(
    /^warning: env: what is written for TOKEN lies in Temporal in clear.*\nerror: cannot reach/,
  );
  expect(await start({ HOLDFAST_CODEC_KEY_FILE: '/nowhere/keys' })).toMatch(
    /^error: HOLDFAST_CODEC_KEY_FILE: cannot read \/nowhere\/keys/,
  );
});
