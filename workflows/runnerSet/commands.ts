/** What operators tell a set: one command after the other, each carried out once and answered. */
import { getExternalWorkflowHandle, log } from '@temporalio/workflow';
import { FAILURE_TYPES, type AdmittedSet } from '../../core/calls/index.ts';
import { setReplySignal, type RunnerSetInput, type SetCommand, type SetReply, type SetRequest, type SetScale } from '../../core/contract/index.ts';
import { defined } from '../../core/defined.ts';
import { readReason } from '../../core/domain/cancellation.ts';
import { isObject } from '../../core/isObject.ts';
import { settle, workerCalls } from '../calls.ts';
import type { SetState } from './state.ts';
import { setAnswer } from './status.ts';

/** Commands that were carried out, and are known if they are sent again. */
const REMEMBERED = 200;

type Refusal = Extract<SetReply, { refused: unknown }>['refused'];

export class SetCommands {
  readonly #waiting: SetRequest[] = [];
  /** Ids, the oldest first. */
  readonly #done: Set<string>;
  #answering = 0;

  constructor(done: readonly string[] = []) {
    this.#done = new Set(done);
  }

  /** For the next run; nothing may wait. */
  carry(): string[] {
    return [...this.#done];
  }

  /** @param request - anybody can send a signal: one that no command has sent is left out, because its answer could not be sent */
  receive(request: unknown): void {
    const read = readRequest(request);
    if (read === undefined) log.warn('A request was left out: it needs id, a workflow id, and command; start the workflow setCommand, which sends it');
    else this.#waiting.push(read);
  }

  /** A command is to be carried out. */
  get hasNext(): boolean {
    return this.#waiting.length > 0;
  }

  /** All are carried out, and their answers are with those who asked. An answer that is under way when the run is closed is lost. */
  get areAnswered(): boolean {
    return !this.hasNext && this.#answering === 0;
  }

  /**
   * Carries out the one that waits longest, and those behind it that need nobody's word.
   * @param tick - moves the set's time on to what a worker says @returns the set's time
   */
  async obey(state: SetState, tick: (at: number) => number): Promise<number> {
    const declared = this.#declaredNext(state);
    if (declared === undefined) {
      const now = tick((await workerCalls('what time is it?').clock()).at);
      while (this.hasNext && this.#declaredNext(state) === undefined) this.#finish(state, now, carryOut);
      return now;
    }
    const called = await settle(workerCalls('check the declaration').admitSet({ input: declared }));
    if (called.kind === 'done') {
      const { value } = called;
      const now = tick(value.at);
      this.#finish(state, now, () => declare(state, value, now));
      return now;
    }
    const now = tick(0);
    const refused = called.kind === 'failed' ? { type: called.type, message: called.message } : refuse('the check of the declaration was called off');
    this.#finish(state, now, () => refused);
    return now;
  }

  /** What the set would be after the next command; `undefined`: the next one declares nothing, was carried out before, or is refused. */
  #declaredNext(state: SetState): RunnerSetInput | undefined {
    const [next] = this.#waiting;
    return next === undefined || this.#done.has(next.id) || whyNot(state, next.command) !== undefined ? undefined : declaredBy(state, next.command);
  }

  /** The next command, and its answer. */
  #finish(state: SetState, now: number, run: (state: SetState, command: SetCommand) => Refusal | undefined): void {
    const request = this.#waiting.shift();
    if (request === undefined) return;
    const { id, command } = request;
    const refused = this.#done.has(id) ? undefined : (whyNot(state, command) ?? run(state, command));
    state.settle(now);
    if (refused === undefined) this.#remember(id);
    this.#reply(id, refused === undefined ? { answer: setAnswer(state, now) } : { refused });
  }

  #remember(id: string): void {
    this.#done.add(id);
    const [oldest] = this.#done;
    if (this.#done.size > REMEMBERED && oldest !== undefined) this.#done.delete(oldest);
  }

  #reply(id: string, reply: SetReply): void {
    this.#answering++;
    void getExternalWorkflowHandle(id)
      .signal(setReplySignal, reply)
      .catch((error: unknown) => log.info('A command was carried out, and nobody waits for the answer', { id, why: String(error) }))
      .finally(() => this.#answering--);
  }
}

const NAMES: Readonly<Record<SetCommand['command'], true>> = { scale: true, apply: true, setTemplate: true, pause: true, resume: true, hold: true, drain: true };

function readRequest(request: unknown): SetRequest | undefined {
  if (!isObject(request) || !isObject(request['command'])) return undefined;
  const { id, command } = request;
  // The server fails a workflow for good that sends a signal to an id that none can have.
  const isId = typeof id === 'string' && /^[\x20-\x7E]{1,1000}$/.test(id);
  return isId && Object.hasOwn(NAMES, String(command['command'])) ? { id, command: command as unknown as SetCommand } : undefined;
}

function whyNot({ facts }: SetState, { command }: SetCommand): Refusal | undefined {
  return facts.ending !== undefined && command !== 'drain' ? refuse('the set is being drained, and ends when its runners have') : undefined;
}

/** `undefined`: it declares nothing. */
function declaredBy({ facts: { declaration } }: SetState, command: SetCommand): RunnerSetInput | undefined {
  switch (command.command) {
    case 'apply':
      return command.declaration;
    case 'setTemplate':
      return { ...declaration, template: command.template };
    case 'scale':
      return scaled(declaration, defined({ replicas: command.replicas, minIdle: command.minIdle, max: command.max }));
    case 'pause':
    case 'resume':
    case 'hold':
    case 'drain':
      return undefined;
  }
}

/** Another size; of an elastic one that names only one bound, the other stays. */
function scaled({ replicas, minIdle, max, ...rest }: RunnerSetInput, scale: SetScale): RunnerSetInput {
  if (scale.replicas !== undefined || replicas !== undefined) return { ...rest, ...scale };
  return { ...rest, ...defined({ minIdle, max }), ...scale };
}

function declare(state: SetState, { spec, declaration, schedule, at }: AdmittedSet, now: number): Refusal | undefined {
  const { name } = state.facts.spec;
  if (spec.name !== name) return { type: FAILURE_TYPES.invalidInput, message: `Invalid input: declaration.name: this set is called ${name}` };
  state.declare(spec, declaration, schedule, at, now);
  return undefined;
}

function carryOut(state: SetState, command: SetCommand): Refusal | undefined {
  switch (command.command) {
    case 'pause':
      state.pause(readReason(command));
      return undefined;
    case 'resume':
      state.resume();
      return undefined;
    case 'drain':
      state.end(readReason(command));
      return undefined;
    case 'hold':
      return hold(state, String(command.runner), command.release === true);
    // By hand, and without what is to be declared.
    case 'scale':
    case 'apply':
    case 'setTemplate':
      return refuse(`${command.command}: does not say what the set is to be`);
  }
}

function hold(state: SetState, runner: string, release: boolean): Refusal | undefined {
  const isThere = release ? [...state.holds].some((held) => state.isSame(held, runner)) : state.runners.find(runner) !== undefined;
  if (!isThere) return refuse(`runner: this set ${release ? 'holds' : 'has'} no "${runner}"`);
  state.hold(runner, release);
  return undefined;
}

const refuse = (message: string): Refusal => ({ type: FAILURE_TYPES.setRefuses, message });
