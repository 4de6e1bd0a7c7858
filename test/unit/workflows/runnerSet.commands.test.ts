import { describe, expect, test } from '@jest/globals';
import type { RunnerSetInput, SetCommand } from '../../../core/contract/index.ts';
import { runnerWorkflowId } from '../../../core/domain/setRunnerNames.ts';
import {
  executeCommand,
  applyDeclaration,
  declarationFrom,
  parseRequest,
  rejectionOf,
} from '../../../workflows/runnerSet/commandRules.ts';
import { SetState } from '../../../workflows/runnerSet/state.ts';
import { commandResult } from '../../../workflows/runnerSet/status.ts';
import { setSpec } from '../../support/setModel.ts';

const NOW = 1_000_000;
const workflowId = runnerWorkflowId('linux', 'abcdefghij');
const runnerName = 'linux-abcdefghij-0a1b2c3d4e';
const template = { organization: 'acme' };

/** A set with one idle runner. */
function setOf(size: Partial<RunnerSetInput> = { minIdle: 1, max: 5 }): SetState {
  const state = SetState.begin(
    setSpec({ ...size, template }),
    { name: 'linux', ...size, template },
    {},
    NOW,
  );
  state.onRunnersListed([], [], NOW);
  state.onRunnersStarting([{ workflowId }], NOW);
  state.onRunnerOnline({ workflowId, runnerName }, NOW);
  state.updateDemand(NOW);
  return state;
}

describe('the declaration after a command', () => {
  test.each<[Partial<RunnerSetInput>, SetCommand, object | undefined]>([
    [
      { minIdle: 1, max: 5 },
      { command: 'scale', minIdle: 2 },
      { name: 'linux', template, minIdle: 2, max: 5 },
    ],
    [
      { minIdle: 1, max: 5 },
      { command: 'scale', max: 9 },
      { name: 'linux', template, minIdle: 1, max: 9 },
    ],
    [
      { minIdle: 1, max: 5 },
      { command: 'scale', replicas: 3 },
      { name: 'linux', template, replicas: 3 },
    ],
    [
      { replicas: 3 },
      { command: 'scale', minIdle: 0, max: 4 },
      { name: 'linux', template, minIdle: 0, max: 4 },
    ],
    [
      { replicas: 3 },
      { command: 'scale', replicas: 0, name: 'another' } as SetCommand,
      { name: 'linux', template, replicas: 0 },
    ],
    [
      { replicas: 3 },
      { command: 'setTemplate', template: { organization: 'other' } },
      { name: 'linux', template: { organization: 'other' }, replicas: 3 },
    ],
    [
      { replicas: 3 },
      { command: 'apply', declaration: { name: 'linux', max: 2, template } },
      { name: 'linux', max: 2, template },
    ],
    [{ replicas: 3 }, { command: 'pause' }, undefined],
    [{ replicas: 3 }, { command: 'hold', runner: runnerName }, undefined],
    [{ replicas: 3 }, { command: 'apply' } as SetCommand, undefined],
  ])('%j: %j', (size, command, declared) => {
    expect(declarationFrom(setOf(size), command)).toEqual(declared);
  });

  test('is accepted only with the name of the set', () => {
    const state = setOf();
    const at = NOW + 1;
    expect(
      applyDeclaration(
        state,
        {
          spec: setSpec({ name: 'other' }),
          declaration: { name: 'other', template },
          schedule: {},
          at,
        },
        at,
      ),
    ).toEqual({
      type: 'InvalidInput',
      message: 'Invalid input: declaration.name: this set is called linux',
    });
    expect(
      applyDeclaration(
        state,
        {
          spec: setSpec({ replicas: 4 }),
          declaration: { name: 'linux', replicas: 4, template },
          schedule: {},
          at,
        },
        at,
      ),
    ).toBeUndefined();
    state.updateDemand(at);
    expect(commandResult(state, at)).toMatchObject({
      replicas: 4,
      desired: 4,
      runners: { starting: 0, idle: 1, busy: 0, draining: 0 },
    });
  });
});

describe('the effects of commands', () => {
  const ENDS = 'the set is being deleted and ends when its runners have ended';
  test.each<[SetCommand[], object]>([
    [[{ command: 'pause', reason: 'why' }], { paused: 'paused: why' }],
    [[{ command: 'pause' }, { command: 'resume' }], { paused: undefined }],
    [[{ command: 'hold', runner: runnerName }], { holds: [runnerName] }],
    [
      [
        { command: 'hold', runner: workflowId },
        { command: 'hold', runner: runnerName, release: true },
      ],
      { holds: [] },
    ],
    [
      [{ command: 'hold', runner: { toString: null } as never }],
      { refused: 'runner: give its name or workflow id' },
    ],
    [[{ command: 'hold', runner: 'nobody' }], { refused: 'runner: this set has no "nobody"' }],
    [
      [{ command: 'hold', runner: runnerName, release: true }],
      { refused: `runner: this set holds no "${runnerName}"` },
    ],
    [[{ command: 'hold' } as SetCommand], { refused: 'runner: give its name or workflow id' }],
    [
      [
        { command: 'drain', reason: 'moved' },
        { command: 'drain', reason: 'again' },
      ],
      { deleting: 'moved', desired: 0 },
    ],
    [[{ command: 'drain' }, { command: 'resume' }], { refused: ENDS }],
    [[{ command: 'drain' }, { command: 'scale', replicas: 2 }], { refused: ENDS }],
    [
      [{ command: 'apply' } as SetCommand],
      { refused: 'apply: must have the new declaration of the set' },
    ],
  ])('%j', (commands, expected) => {
    const state = setOf();
    let refused: string | undefined;
    for (const command of commands)
      refused = (rejectionOf(state, command) ?? executeCommand(state, command))?.message;
    state.updateDemand(NOW);
    expect({
      ...commandResult(state, NOW),
      paused: commandResult(state, NOW).blockedReason,
      ...(refused === undefined ? {} : { refused }),
    }).toMatchObject(expected);
  });
});

describe('a request', () => {
  test.each([
    undefined,
    null,
    'pause',
    [],
    {},
    { workflowId: 'x' },
    { id: 7, command: { command: 'pause' } },
    { workflowId: '', command: { command: 'pause' } },
    { workflowId: 'ä', command: { command: 'pause' } },
    { workflowId: 'x'.repeat(1_001), command: { command: 'pause' } },
    { workflowId: 'x', command: 'pause' },
    { workflowId: 'x', command: {} },
    { workflowId: 'x', command: { command: 'toString' } },
  ])('%j is invalid', (request) => {
    expect(parseRequest(request)).toBeUndefined();
  });

  test('is parsed to its id and its command only', () => {
    expect(
      parseRequest({ workflowId: 'set-command:linux:1', command: { command: 'pause' }, more: 1 }),
    ).toEqual({ workflowId: 'set-command:linux:1', command: { command: 'pause' } });
  });
});
