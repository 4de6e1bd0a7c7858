import {
  CancellationScope,
  condition,
  continueAsNew,
  isCancellation,
  log,
  setCurrentDetails,
  sleep,
  upsertSearchAttributes,
  workflowInfo,
} from '@temporalio/workflow';
import type { AdmittedDefinition, OverTurn } from '../../core/activities/index.ts';
import {
  SEARCH_ATTRIBUTES,
  type JobDefinitionInput,
  type JobDefinitionStatus,
  type RepositoryChange,
  type TurnEndedNews,
} from '../../core/contract/index.ts';
import { scheduleGroupId } from '../../core/domain/changeSet.ts';
import { runOf } from '../../core/domain/declaredJob.ts';
import { isoTime } from '../../core/domain/isoTime.ts';
import type { Scope } from '../../core/domain/ciServer.ts';
import {
  changedPathsCalls,
  settle,
  temporalCalls,
  workerCalls,
} from '../shared/activityProxies.ts';
import type { CarriedDefinition } from './carried.ts';
import { definitionDetails, definitionStatus } from './display.ts';
import { changeText, decideChange, readChange } from './triggers.ts';
import { ask, begin, end, type Turn } from './turns.ts';

/** What it was told, or has found out. */
type Heard =
  | { readonly kind: 'apply'; readonly input: JobDefinitionInput }
  | { readonly kind: 'pause'; readonly reason: string }
  | { readonly kind: 'resume' }
  | { readonly kind: 'delete'; readonly reason: string }
  /** `asked`: which files it changes. */
  | { readonly kind: 'change'; readonly change: RepositoryChange; readonly asked: boolean }
  | { readonly kind: 'ended'; readonly news: TurnEndedNews }
  /** A time of the schedule has come. */
  | { readonly kind: 'due'; readonly atMs: number }
  | { readonly kind: 'look' };

/** Of what ended, and of what was left out, the last ones are shown. */
const SHOWN = 10;
/** So much rarer it is looked whether runs are over when nothing waits for them. */
const UNHURRIED = 10;

/** A declared job and what goes on in it: one piece of news after the other. Nothing is decided by the workflow's clock (workflows/runnerSet/reconcile.ts says why): a time has come when its timer says so. */
export class Definition {
  readonly #id: string;
  readonly #heard: Heard[] = [];
  #now: CarriedDefinition;
  #checking = 0;
  #asking = 0;
  #scheduled: Alarm | undefined;
  #look: Alarm | undefined;

  constructor(workflowId: string, carried: CarriedDefinition) {
    this.#id = workflowId;
    this.#now = carried;
  }

  get declaration(): JobDefinitionInput | undefined {
    return this.#now.admitted?.declaration;
  }

  hear(heard: Heard): void {
    if (heard.kind === 'apply') this.#checking++;
    this.#heard.push(heard);
  }

  status(): JobDefinitionStatus {
    return definitionStatus(this.#id, this.#now, this.#checking > 0);
  }

  /** Returns when it has ended. */
  async run(): Promise<void> {
    this.#setSchedule();
    this.#setLook();
    for (;;) {
      await condition(() => this.#heard.length > 0);
      for (const heard of this.#heard.splice(0)) await this.#take(heard);
      await this.#begin();
      this.#setLook();
      setCurrentDetails(definitionDetails(this.status()));
      if (this.#heard.length > 0) continue;
      if (this.#now.ending !== undefined && this.#now.turns.running.length === 0) return;
      if (workflowInfo().continueAsNewSuggested && this.#asking === 0)
        await continueAsNew<(carried: CarriedDefinition) => Promise<void>>(this.#now);
    }
  }

  async #take(heard: Heard): Promise<void> {
    switch (heard.kind) {
      case 'apply':
        return await this.#apply(heard.input);
      case 'pause':
        return this.#change({ paused: heard.reason });
      case 'resume': {
        const { paused: _over, ...now } = this.#now;
        this.#now = now;
        return;
      }
      case 'delete':
        this.#scheduled?.cancel();
        return this.#change({ ending: heard.reason, turns: { ...this.#now.turns, waiting: [] } });
      case 'change':
        return this.#takeChange(heard);
      case 'ended':
        return this.#end(heard.news);
      case 'due':
        return await this.#takeDue(heard.atMs);
      case 'look':
        return await this.#takeLook();
    }
  }

  /** A declaration that does not hold leaves all as it is, but is shown. */
  async #apply(input: JobDefinitionInput): Promise<void> {
    const called = await settle(
      workerCalls('check the declaration').admitDefinition({ input, workflowId: this.#id }),
    );
    this.#checking--;
    if (called.kind === 'interrupted') return;
    if (called.kind === 'failed') {
      this.#change({ refused: { what: 'declaration', why: called.message, at: timeNow() } });
      return;
    }
    const { refused: _before, ending: _revoked, ...now } = this.#now;
    this.#now = { ...now, admitted: called.value, generation: now.generation + 1 };
    const { name, repository } = called.value.spec;
    upsertSearchAttributes([
      { key: SEARCH_ATTRIBUTES.name, value: name },
      { key: SEARCH_ATTRIBUTES.scope, value: repository },
    ]);
    this.#setSchedule();
  }

  #takeChange({ change: told, asked }: Extract<Heard, { kind: 'change' }>): void {
    const { admitted, ending } = this.#now;
    const change = readChange(told);
    if (change === undefined) {
      log.warn(
        'A change was left out: it needs event, commit, ref and at; a pull request also pullRequest and branch',
      );
      return;
    }
    if (admitted === undefined || ending !== undefined) return;
    const decision = decideChange(admitted.spec, change, asked);
    if (decision.kind === 'askPaths')
      return void this.#askPaths(admitted, change, decision.pullRequest);
    if (decision.kind === 'leave') return this.#leaveOut(changeText(change), decision.why);
    if (decision.kind === 'run')
      this.#ask(
        {
          group: decision.group,
          version: change.commit,
          atMs: Date.parse(change.at),
          source: decision.source,
          since: timeNow(),
        },
        changeText(change),
      );
  }

  /** Nobody waits for it: a CI server that is slow must not hold up other changes. */
  async #askPaths(
    { spec }: AdmittedDefinition,
    change: RepositoryChange,
    pullRequest: number,
  ): Promise<void> {
    const { credential, repository } = spec;
    const scope: Scope = { kind: 'repository', name: repository };
    this.#asking++;
    const called = await settle(
      changedPathsCalls(credential, scope).changedPaths({ credential, scope, pullRequest }),
    );
    this.#asking--;
    const paths = called.kind === 'done' ? called.value : null;
    if (called.kind === 'failed')
      log.warn('It is not known which files a pull request changes: the job is run', {
        pullRequest,
        why: called.message,
      });
    this.hear({
      kind: 'change',
      change: paths === null ? change : { ...change, paths },
      asked: true,
    });
  }

  async #takeDue(atMs: number): Promise<void> {
    const { admitted, paused, ending } = this.#now;
    if (admitted === undefined || admitted.nextAtMs !== atMs || ending !== undefined) return;
    const { name, repository, schedules } = admitted.spec;
    const { nextAtMs: _passed, ...rest } = admitted;
    this.#change({
      admitted: {
        ...rest,
        ...(await workerCalls('when is the next time?').nextScheduled({
          schedules,
          afterMs: atMs,
        })),
      },
    });
    this.#setSchedule();
    const at = isoTime(atMs);
    if (paused !== undefined) return this.#leaveOut(`schedule, ${at}`, 'it is paused');
    // What a version may be called has neither dashes nor colons.
    this.#ask(
      {
        group: scheduleGroupId({ job: name, repository }),
        version: at.replaceAll(/[-:]|\.\d+/g, ''),
        atMs,
        source: { event: 'schedule' },
        since: timeNow(),
      },
      `schedule, ${at}`,
    );
  }

  async #takeLook(): Promise<void> {
    const { running } = this.#now.turns;
    if (running.length === 0) return;
    const { over } = await temporalCalls(`are ${running.length} change sets over?`).findOver({
      groups: running.map(({ group }) => group),
    });
    for (const news of over) this.#end(news);
  }

  #ask(turn: Turn, what: string): void {
    const { turns, leftOut } = ask(this.#now.turns, turn);
    this.#change({ turns });
    if (leftOut !== undefined) this.#leaveOut(what, leftOut);
  }

  /** Hands over what may begin now, as the job is now. */
  async #begin(): Promise<void> {
    const { admitted, paused, ending } = this.#now;
    if (admitted === undefined || paused !== undefined || ending !== undefined) return;
    const { turns, hand } = begin(
      this.#now.turns,
      admitted.spec.maxConcurrency ?? Infinity,
      timeNow(),
    );
    this.#change({ turns });
    for (const { group, version: commit, atMs, source, number } of hand) {
      const version = {
        commit,
        at: isoTime(atMs),
        job: runOf(admitted.declaration, source),
        turn: { definition: this.#id, number },
      };
      await temporalCalls(`run ${commit.slice(0, 12)}`).handVersion({ group, version });
    }
  }

  /** @param news - without a number: it was found to be over */
  #end({ group, number, outcome: told }: OverTurn & Partial<TurnEndedNews>): void {
    const { turns, ended } = end(this.#now.turns, group, number);
    if (ended === undefined) return;
    const { version, since, source } = ended;
    const outcome = told === undefined ? {} : { outcome: told };
    this.#change({
      turns,
      ended: [
        {
          group,
          version,
          since,
          ...(source.untrusted === true ? { untrusted: true as const } : {}),
          endedAt: timeNow(),
          ...outcome,
        },
        ...this.#now.ended,
      ].slice(0, SHOWN),
    });
  }

  #leaveOut(what: string, why: string): void {
    this.#change({ leftOut: [{ what, why, at: timeNow() }, ...this.#now.leftOut].slice(0, SHOWN) });
  }

  #change(changed: Partial<CarriedDefinition>): void {
    this.#now = { ...this.#now, ...changed };
  }

  #setSchedule(): void {
    const atMs = this.#now.admitted?.nextAtMs;
    this.#scheduled?.cancel();
    this.#scheduled =
      atMs === undefined || this.#now.ending !== undefined
        ? undefined
        : new Alarm(atMs - Date.now(), "until the schedule's next run", () =>
            this.hear({ kind: 'due', atMs }),
          );
  }

  /** In case a word of theirs is lost. */
  #setLook(): void {
    const { admitted, turns } = this.#now;
    const isHurried = turns.waiting.length > 0;
    if (
      this.#look?.rings === true &&
      turns.running.length > 0 &&
      this.#look.isHurried === isHurried
    )
      return;
    this.#look?.cancel();
    this.#look =
      turns.running.length === 0 || admitted === undefined
        ? undefined
        : new Alarm(
            admitted.spec.relookMs * (isHurried ? 1 : UNHURRIED),
            'until it is looked whether runs are over',
            () => this.hear({ kind: 'look' }),
            isHurried,
          );
  }
}

/** A timer that tells once, unless it is cancelled. */
class Alarm {
  readonly isHurried: boolean;
  readonly #scope = new CancellationScope();
  /** It has not rung yet. */
  rings = true;

  constructor(afterMs: number, summary: string, ring: () => void, isHurried = false) {
    this.isHurried = isHurried;
    const sleeping = this.#scope.run(async () => await sleep(Math.max(1, afterMs), { summary }));
    void sleeping.then(
      () => {
        this.rings = false;
        ring();
      },
      (error: unknown) => {
        if (!isCancellation(error)) throw error;
      },
    );
  }

  cancel(): void {
    this.rings = false;
    this.#scope.cancel();
  }
}

/** For people alone. */
const timeNow = (): string => new Date().toISOString();
