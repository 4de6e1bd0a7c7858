/** Rules for all kinds of runners. The files of GitHub's runner are tested in test/unit/deploy.test.ts and test/unit/supervisor.decisions.test.ts. */
import { describe, expect, test } from '@jest/globals';
import { isReservedEnv } from '../../../core/domain/podTemplate.ts';
import {
  RUNNER_KINDS,
  TOKEN_VARIABLES,
  registrationWithToken,
  takesJobs,
} from '../../../core/domain/runnerKinds/runnerKinds.ts';
import { parseRunnerInput } from '../../../core/input/runner.ts';

describe.each(Object.entries(RUNNER_KINDS))('the kind %s', (_name, kind) => {
  const { registration } = kind;

  test('takes jobs only if it registers, and its log or hooks then report them', () => {
    expect((kind.log ?? kind.jobHooks) !== undefined).toBe(registration !== undefined);
  });

  test('reserves the variables of its registration', () => {
    const { variables = [], variablePrefixes = [] } = registration ?? {};
    const names = [...variables, ...variablePrefixes.map((prefix) => `${prefix}NAME`)];
    expect(names.filter((name) => !isReservedEnv(name))).toEqual([]);
  });

  test('creates and uses all of its files', () => {
    const { files = [], command = [] } = registration?.token ?? {};
    for (const file of files) {
      expect(command.join('\n')).toContain(file);
      expect(kind.image?.command.join('\n')).toContain(`"$HOLDFAST_REGISTRATION_DIR"/${file}`);
    }
  });
});

test("the supervisor detects the end of a job of Gitea's runner", () => {
  const script = RUNNER_KINDS.gitea.image?.command.join('\n') ?? '';
  const [, settings = ''] = /^runner: \{(.*)\}$/m.exec(script) ?? [];
  const hours = Object.fromEntries(
    settings.split(', ').map((setting) => {
      const [, name = '', count = ''] = /^(\w+): (\d+)h$/.exec(setting) ?? [];
      return [name, Number(count)];
    }),
  );
  const longestJobHours = 24 * 7;
  expect(hours['timeout']).toBeGreaterThanOrEqual(longestJobHours);
  expect(hours['shutdown_timeout']).toBeGreaterThanOrEqual(24);
});

test('a token is recognized by its variable', () => {
  expect(TOKEN_VARIABLES).toEqual(['RUNNER_TOKEN']);
  expect(registrationWithToken(['RUNNER_NAME', 'RUNNER_TOKEN'])?.variable).toBe('RUNNER_TOKEN');
  expect(registrationWithToken(['ACTIONS_RUNNER_INPUT_JITCONFIG'])).toBeUndefined();
});

test.each<[input: object, kind: string, jobs: boolean]>([
  [{ organization: 'acme' }, 'github', true],
  [{ organization: 'acme', ciServer: 'gitea' }, 'gitea', true],
  [{ ciServer: 'none', command: ['true'] }, 'command', false],
])('the input %j is of the kind %s', (input, kind, jobs) => {
  const parsed = parseRunnerInput(input);
  const watches = parsed.ok ? parsed.spec.pod.supervision.runnerKind : undefined;
  expect(watches).toBe(kind);
  expect(watches !== undefined && takesJobs(watches)).toBe(jobs);
});
