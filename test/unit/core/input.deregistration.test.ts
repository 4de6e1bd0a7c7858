import { describe, expect, test } from '@jest/globals';
import { DEREGISTRATION_TIMEOUTS } from '../../../core/contract/index.ts';
import { parseDeregistrationInput } from '../../../core/input/deregistration.ts';

describe('input of the deregistration workflow', () => {
  test('production defaults', () => {
    expect(DEREGISTRATION_TIMEOUTS).toEqual({ timeout: '24h', initialRetryInterval: '1m' });
    expect(
      parseDeregistrationInput({ repository: 'acme/app', runner: { name: 'r-1', id: '7' } }),
    ).toEqual({
      ok: true,
      spec: {
        scope: { kind: 'repository', name: 'acme/app' },
        credential: 'default',
        runner: { name: 'r-1', id: '7' },
        reason: 'asked for by hand',
        timeoutMs: 86_400_000,
        initialRetryIntervalMs: 60_000,
      },
    });
  });

  test('a runner of a scale set is looked up there too', () => {
    const input = { organization: 'acme', runner: { name: 'r-1' } };
    const parse = (inScaleSet: unknown) => parseDeregistrationInput({ ...input, inScaleSet });
    expect(parse(true)).toMatchObject({ ok: true, spec: { inScaleSet: true } });
    expect(parse(false)).not.toHaveProperty('spec.inScaleSet');
    expect(parse('yes')).toMatchObject({ ok: false, errors: [{ field: 'inScaleSet' }] });
  });

  test('a runner workflow without the id of its runner hands off the name alone', () => {
    const runner = { name: 'ci-0a1b2-r2' };
    expect(
      parseDeregistrationInput({
        organization: 'acme',
        credential: 'app',
        runner,
        reason: 'why',
        initialRetryInterval: '150ms',
      }),
    ).toMatchObject({
      ok: true,
      spec: { runner, credential: 'app', reason: 'why', initialRetryIntervalMs: 150 },
    });
  });

  test.each([
    ['no scope', { runner: { name: 'r' } }, 'organization'],
    [
      'two scopes',
      { organization: 'a', enterprise: 'b', runner: { name: 'r' } },
      'organization, enterprise',
    ],
    ['no runner', { organization: 'a' }, 'runner'],
    ['a runner without a name', { organization: 'a', runner: { id: '1' } }, 'runner.name'],
    ['a number', { organization: 'a', runner: { name: 'r', id: 1 } }, 'runner.id'],
    ['a path', { organization: 'a', runner: { name: 'r', id: '1/2' } }, 'runner.id'],
    ['an unknown field', { organization: 'a', runner: { name: 'r' }, giveUp: '1h' }, 'giveUp'],
    [
      'no duration',
      { organization: 'a', runner: { name: 'r' }, initialRetryInterval: 'soon' },
      'initialRetryInterval',
    ],
    ['nothing', undefined, 'input'],
  ])('%s is rejected, and the error names the field', (_what, input, field) => {
    expect(parseDeregistrationInput(input)).toMatchObject({ ok: false, errors: [{ field }] });
  });
});
