/**
 * Effects of commands on a set, and the rules for rejecting them. It does not depend on Temporal,
 * so that it can be unit-tested.
 */
import { FAILURE_TYPES, type AdmittedSet } from '../../core/activities/index.ts';
import type {
  RunnerSetInput,
  SetCommand,
  SetCommandReply,
  SetCommandRequest,
  SetScale,
} from '../../core/contract/index.ts';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import { parseReason } from '../../core/domain/cancellation.ts';
import { isObject } from '../../core/domain/isObject.ts';
import { MAX_HOLDS } from '../../core/domain/scale.ts';
import type { SetState } from './state.ts';

/** Error with which a set rejects a command. */
export type Rejection = Extract<SetCommandReply, { error: unknown }>['error'];

const NAMES: Readonly<Record<SetCommand['command'], true>> = {
  scale: true,
  apply: true,
  setTemplate: true,
  pause: true,
  resume: true,
  hold: true,
  drain: true,
};

/**
 * Parses the body of a command signal.
 *
 * @returns `undefined` if it is not a valid command
 */
export function parseRequest(request: unknown): SetCommandRequest | undefined {
  if (!isObject(request) || !isObject(request['command'])) return undefined;
  const { workflowId, command } = request;
  // The server permanently fails a workflow that sends a signal to an invalid workflow id.
  const isId = typeof workflowId === 'string' && /^[\x20-\x7E]{1,1000}$/.test(workflowId);
  const name = command['command'];
  return isId && typeof name === 'string' && Object.hasOwn(NAMES, name)
    ? { workflowId, command: command as unknown as SetCommand }
    : undefined;
}

/** Returns the reason why such a command is rejected now, if any. */
export function rejectionOf({ facts }: SetState, { command }: SetCommand): Rejection | undefined {
  return facts.ending !== undefined && command !== 'drain'
    ? reject('the set is being deleted and ends when its runners have ended')
    : undefined;
}

/**
 * Returns the declaration of the set after the command; `undefined` if the command changes no
 * declaration. The declaration must be admitted before it is applied.
 */
export function declarationFrom(
  { facts: { declaration } }: SetState,
  command: SetCommand,
): RunnerSetInput | undefined {
  switch (command.command) {
    case 'apply':
      return command.declaration;
    case 'setTemplate':
      return { ...declaration, template: command.template };
    case 'scale':
      return scaled(
        declaration,
        omitUndefined({ replicas: command.replicas, minIdle: command.minIdle, max: command.max }),
      );
    case 'pause':
    case 'resume':
    case 'hold':
    case 'drain':
      return undefined;
  }
}

/**
 * Returns the declaration with another size. If the command names only one bound of an elastic set,
 * the other stays.
 */
function scaled(
  { replicas, minIdle, max, ...rest }: RunnerSetInput,
  scale: SetScale,
): RunnerSetInput {
  if (scale.replicas !== undefined || replicas !== undefined) return { ...rest, ...scale };
  return { ...rest, ...omitUndefined({ minIdle, max }), ...scale };
}

/**
 * Applies an admitted declaration.
 *
 * @returns the rejection, if any
 */
export function applyDeclaration(
  state: SetState,
  { spec, declaration, schedule, at }: AdmittedSet,
  now: number,
): Rejection | undefined {
  const { name } = state.facts.spec;
  if (spec.name !== name)
    return {
      type: FAILURE_TYPES.invalidInput,
      message: `Invalid input: declaration.name: this set is called ${name}`,
    };
  state.declare(spec, declaration, schedule, at, now);
  return undefined;
}

/**
 * Executes a command that changes no declaration.
 *
 * @returns the rejection, if any
 */
export function executeCommand(state: SetState, command: SetCommand): Rejection | undefined {
  switch (command.command) {
    case 'pause':
      state.pause(parseReason(command));
      return undefined;
    case 'resume':
      state.resume();
      return undefined;
    case 'drain':
      state.end(parseReason(command));
      return undefined;
    case 'hold':
      return typeof command.runner === 'string'
        ? hold(state, command.runner, command.release === true)
        : reject('runner: give its name or workflow id');
    // A signal sent by hand, without the required fields.
    case 'scale':
    case 'apply':
    case 'setTemplate':
      return reject(`${command.command}: must have the new declaration of the set`);
  }
}

function hold(state: SetState, runner: string, release: boolean): Rejection | undefined {
  const isThere = release ? state.holds.has(runner) : state.runners.find(runner) !== undefined;
  if (!isThere) return reject(`runner: this set ${release ? 'holds' : 'has'} no "${runner}"`);
  if (!release && state.holds.size >= MAX_HOLDS)
    return reject(`runner: this set already holds ${MAX_HOLDS} runners; release others first`);
  if (release) state.holds.release(runner);
  else state.holds.add(runner);
  return undefined;
}

/** Returns a rejection of type `SetCommandRejected` with this message. */
export const reject = (message: string): Rejection => ({
  type: FAILURE_TYPES.setCommandRejected,
  message,
});
