import { describe, expect, test } from '@jest/globals';
import { parseSetCommandInput } from '../../../core/input/setCommand.ts';

describe('input of the setCommand workflow', () => {
  test.each([
    { set: 'linux', command: 'scale', replicas: 3 },
    { set: 'linux', command: 'scale', max: 9 },
    { set: 'linux', command: 'apply', declaration: { anything: 'is for the set to check' } },
    { set: 'linux', command: 'setTemplate', template: {} },
    { set: 'linux', command: 'pause' },
    { set: 'linux', command: 'pause', reason: 'why' },
    { set: 'linux', command: 'resume' },
    { set: 'linux', command: 'hold', runner: 'linux-x', release: true },
    { set: 'linux', command: 'drain', reason: 'why' },
  ])('%j', (input) => {
    expect(parseSetCommandInput(input)).toEqual({ ok: true, spec: input });
  });

  test.each([
    ['nothing', undefined, ['input'], 'must be an object with set, command'],
    ['no set', { command: 'pause' }, ['set'], 'is missing'],
    ['an invalid name of a set', { set: '../x', command: 'pause' }, ['set'], 'must consist of'],
    [
      'no command',
      { set: 'linux' },
      ['command'],
      'must be one of scale, apply, setTemplate, pause, resume, hold and drain',
    ],
    [
      'an unknown command',
      { set: 'linux', command: 'explode' },
      ['command'],
      'must be one of scale',
    ],
    [
      'no size',
      { set: 'linux', command: 'scale' },
      ['replicas'],
      'give replicas, or minIdle and max',
    ],
    [
      'no number',
      { set: 'linux', command: 'scale', replicas: '3' },
      ['replicas'],
      'expected number',
    ],
    ['no declaration', { set: 'linux', command: 'apply' }, ['declaration'], 'is required'],
    [
      'no template',
      { set: 'linux', command: 'setTemplate', template: 'x' },
      ['template'],
      'is required',
    ],
    [
      'no runner',
      { set: 'linux', command: 'hold' },
      ['runner'],
      'is missing: its name or workflow id',
    ],
    [
      'two faults',
      { set: 'linux', command: 'pause', reason: 7, until: 'noon' },
      ['reason', 'until'],
      'expected string',
    ],
  ])('%s is rejected, and the error names the field', (_what, input, fields, message) => {
    const parsed = parseSetCommandInput(input);
    expect(parsed).toMatchObject({ ok: false, errors: fields.map((field) => ({ field })) });
    expect(!parsed.ok && parsed.errors[0]?.message).toContain(message);
  });
});
