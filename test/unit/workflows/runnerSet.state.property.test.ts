/** Decisions of a set for random events in every order, in a model of its environment. test/temporal/runnerSetRandom.test.ts tests the execution. */
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { DRAIN_REPEATED_REASON } from '../../../workflows/runnerSet/plan.ts';
import { caseCount } from '../../support/caseCount.ts';
import { SetModel } from '../../support/setModel.ts';

type Touch = {
  kind: 'hold' | 'release' | 'online' | 'take' | 'finish' | 'lose' | 'fail' | 'crash';
  which: number;
};
type Command =
  | Touch
  | { kind: 'scale'; minIdle: number; max: number; replicas: number }
  | { kind: 'template'; labels: number }
  | { kind: 'deliver' | 'redeliver' | 'losePost'; which: number }
  | { kind: 'queue' | 'pause' | 'resume' | 'nothing' }
  | { kind: 'wait'; ms: number };

const which = fc.nat(1_000);
const command: fc.Arbitrary<Command> = fc.oneof(
  { weight: 4, arbitrary: fc.constant<Command>({ kind: 'queue' }) },
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constantFrom('online', 'take', 'finish'),
      which,
    }) as fc.Arbitrary<Command>,
  },
  {
    weight: 6,
    arbitrary: fc.record({ kind: fc.constant('deliver'), which }) as fc.Arbitrary<Command>,
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constantFrom('redeliver', 'losePost', 'lose', 'fail', 'crash', 'hold', 'release'),
      which,
    }) as fc.Arbitrary<Command>,
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('scale'),
      minIdle: fc.nat(4),
      max: fc.integer({ min: 4, max: 12 }),
      replicas: fc.integer({ min: 1, max: 8 }),
    }) as fc.Arbitrary<Command>,
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('template'),
      labels: fc.nat(3),
    }) as fc.Arbitrary<Command>,
  },
  {
    weight: 1,
    arbitrary: fc.constantFrom<Command>(
      { kind: 'pause' },
      { kind: 'resume' },
      { kind: 'resume' },
      { kind: 'nothing' },
    ),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('wait'),
      ms: fc.integer({ min: 3_000, max: 900_000 }),
    }) as fc.Arbitrary<Command>,
  },
);

/** Indexes of the messages between the set and its runners that are lost, by kind. */
const some = fc.uniqueArray(fc.nat(20), { maxLength: 4 });
const losses = fc.record({ start: some, drain: some, online: some, busy: some, ended: some });

/** All changes that the test may make to the model. The set reacts in {@link SetModel.step}. */
function apply(model: SetModel, step: Command, fixed: boolean, history: { total: number }): void {
  switch (step.kind) {
    case 'scale':
      return model.declare(
        fixed ? { replicas: step.replicas } : { minIdle: step.minIdle, max: step.max },
      );
    case 'template':
      return model.declare({ template: { ...model.input.template, labels: [`v${step.labels}`] } });
    case 'queue':
      history.total++;
      return model.queueJob();
    case 'pause':
      return model.state.pause('by the test');
    case 'resume':
      return model.state.resume();
    case 'wait':
      return model.pass(step.ms);
    case 'nothing':
      return undefined;
    case 'deliver': {
      const [event] = model.mail.splice(step.which % Math.max(1, model.mail.length), 1);
      return event && model.deliver(event);
    }
    case 'redeliver': {
      const event = model.mail[step.which % Math.max(1, model.mail.length)];
      return event && model.deliver(event);
    }
    case 'losePost':
      // Without a queue check nothing replaces the events that a job is queued or has ended.
      if (model.mail[0]?.action === 'in_progress') model.mail.splice(0, 1);
      return undefined;
    case 'hold':
    case 'release':
    case 'online':
    case 'take':
    case 'finish':
    case 'lose':
    case 'fail':
    case 'crash':
      return touch(model, step);
  }
}

function touch(model: SetModel, step: Touch): void {
  const runner = model.pick(step.which);
  if (runner === undefined) return;
  if (step.kind === 'online') model.comeOnline(runner);
  else if (step.kind === 'take') model.takeJob(runner);
  else if (step.kind === 'finish') model.finishJob(runner);
  else if (step.kind === 'hold') model.state.holds.add(runner.workflowId);
  else if (step.kind === 'release') model.state.holds.release(runner.workflowId);
  else if (step.kind === 'fail' && runner.phase === 'Provisioning')
    model.end(runner, 'never_registered');
  else if (step.kind === 'crash' && runner.phase === 'Idle') model.end(runner, 'crashed');
  else if (step.kind === 'lose' && runner.job === undefined) model.end(runner);
}

/** No more commands: events arrive, runners start, take queued jobs, and finish them. */
function quieten(model: SetModel): void {
  model.state.resume();
  model.state.holds.replace([]);
  for (let round = 0; round < 60; round++) {
    for (const event of model.mail.splice(0)) model.deliver(event);
    for (const runner of model.runners.values()) model.comeOnline(runner);
    for (const runner of model.runners.values()) model.takeJob(runner);
    for (const event of model.mail.splice(0)) model.deliver(event);
    for (const runner of model.runners.values()) model.finishJob(runner);
    model.pass(60_000);
  }
}

describe('a set under random events', () => {
  for (const { title, fixed, ephemeral, warm: replaceAhead = 0 } of [
    { title: 'ephemeral runners that follow demand', fixed: false, ephemeral: true },
    {
      title: 'ephemeral runners that follow demand, replaced ahead',
      fixed: false,
      ephemeral: true,
      warm: 2,
    },
    {
      title: 'a fixed number of ephemeral runners, replaced ahead',
      fixed: true,
      ephemeral: true,
      warm: 2,
    },
    { title: 'static runners that follow demand', fixed: false, ephemeral: false },
    { title: 'a fixed number of ephemeral runners', fixed: true, ephemeral: true },
    { title: 'a fixed number of static runners', fixed: true, ephemeral: false },
  ]) {
    test(`${title}: no busy or held runner is scaled down, the limits hold, and it reaches the desired state, whichever messages are lost`, () => {
      fc.assert(
        fc.property(
          fc.array(command, { minLength: 5, maxLength: 60 }),
          fc.boolean(),
          losses,
          (commands, renews, lost) => {
            const scale = fixed ? { replicas: 3 } : { minIdle: 1, max: 6 };
            const model = new SetModel(
              {
                name: 'linux',
                template: { organization: 'acme', ephemeral },
                replaceAhead,
                ...scale,
              },
              (word, index) => lost[word].includes(index),
            );
            model.renews = renews;
            const history = { total: 0 };
            for (const step of commands) {
              apply(model, step, fixed, history);
              model.step();
              const { max = (model.input.replicas ?? 0) + replaceAhead } = model.input;
              expect(model.state.facts.desired).toBeLessThanOrEqual(max);
              expect(model.overfull).toEqual([]);
            }
            for (const drain of model.drains) {
              expect(drain.held).toBe(false);
              if (
                drain.reason === 'the template has changed' ||
                drain.reason === DRAIN_REPEATED_REASON
              )
                continue;
              expect(['Idle', 'Provisioning']).toContain(drain.phase);
              expect(drain.left).toBeGreaterThanOrEqual(drain.recentPeak);
            }
            quieten(model);
            expect(model.queue).toEqual([]);
            const wanted = fixed ? model.input.replicas : model.input.minIdle;
            expect({
              desired: model.state.facts.desired,
              runners: model.count(),
              known: model.state.runners.all().length,
            }).toEqual({ desired: wanted, runners: wanted, known: wanted });
            expect([...model.runners.values()].map(({ generation }) => generation)).toEqual(
              Array.from({ length: wanted ?? 0 }, () => model.state.facts.spec.templateHash),
            );
            expect(model.state.demand()).toEqual({ queued: 0, running: 0 });
            expect(model.state.jobs.completedTotal).toBe(history.total);
          },
        ),
        { numRuns: caseCount(250, 80) },
      );
    });
  }
});
