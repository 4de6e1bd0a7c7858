import { describe, expect, test } from '@jest/globals';
import { decideUnregistration, type UnregistrationAction, type UnregistrationFacts } from '../../../workflows/runner/unregisterTable.ts';

/** An ephemeral JIT runner, alive, that nothing was asked about yet and that says nothing. */
const alive: UnregistrationFacts = {
  proven: false,
  ephemeral: true,
  started: true,
  ended: false,
  sawJob: false,
  toldToGo: false,
  ownSignal: 'unknown',
  heldId: true,
  registrationOver: false,
  patienceOver: false,
  stopRequested: false,
  settled: false,
  idleConfirmed: false,
};
/** A static runner that registers itself: its id is not held. */
const ownRegistration = { ephemeral: false, heldId: false } as const;

type Row = [what: string, facts: Partial<UnregistrationFacts>, expected: Partial<UnregistrationAction>];

describe('the decision table, row by row', () => {
  test.each<Row>([
    ['1: proven, ended', { proven: true, ended: true }, { kind: 'tearDown', row: '1' }],
    ['1: proven, its container never started', { proven: true, started: false }, { kind: 'tearDown', row: '1' }],
    ['1: proven, alive and idle by its own word', { proven: true, ownSignal: 'idle', idleConfirmed: true }, { kind: 'tearDown', row: '1' }],
    ['1: proven, alive and busy', { proven: true, ownSignal: 'busy' }, { kind: 'waitEnded', until: 'jobDeadline' }],
    ['1: proven, alive and silent', { proven: true }, { kind: 'waitEnded', until: 'settled' }],
    ['1: proven, alive, silent, and its time to end is over', { proven: true, settled: true }, { kind: 'stopPod' }],
    ['1: … that stop is asked for once', { proven: true, settled: true, stopRequested: true }, { kind: 'waitEnded', until: 'terminated' }],
    ['1: proven, busy, and its time to end is over: the job goes on', { proven: true, settled: true, ownSignal: 'busy' }, { kind: 'waitEnded', until: 'jobDeadline' }],
    ['1: proven, busy, stop accepted', { proven: true, ownSignal: 'busy', stop: 'stop' }, { kind: 'stopPod', row: '1' }],

    ['2: ephemeral, exit 0 after a job', { ended: true, exitCode: 0, sawJob: true }, { kind: 'tearDown', row: '2' }],
    ['2: … whatever the CI server said before', { ended: true, exitCode: 0, sawJob: true, answer: 'busy' }, { kind: 'tearDown', row: '2' }],
    ['2 not: exit 0 without a job', { ended: true, exitCode: 0 }, { kind: 'askRemoval' }],
    ['2 not: another exit code', { ended: true, exitCode: 1, sawJob: true }, { kind: 'askRemoval' }],
    ['2 not: gone without an exit code', { ended: true, sawJob: true }, { kind: 'askRemoval' }],
    ['2 not: a static runner', { ended: true, exitCode: 0, sawJob: true, ephemeral: false }, { kind: 'askRemoval' }],
    ['2 not: told to go, it may have left its job with exit 0', { ended: true, exitCode: 0, sawJob: true, stop: 'stop', stopRequested: true }, { kind: 'askRemoval' }],

    ['2 not: evicted, it may have left its job with exit 0', { ended: true, exitCode: 0, sawJob: true, toldToGo: true }, { kind: 'askRemoval' }],

    ['3: 204, ended', { answer: 'removed', ended: true }, { kind: 'tearDown', row: '3' }],
    ['3: 204, idle by its own word, which may be old', { answer: 'removed', ownSignal: 'idle' }, { kind: 'waitEnded', row: '3', until: 'idleConfirmed' }],
    ['3: … and still after a moment', { answer: 'removed', ownSignal: 'idle', idleConfirmed: true }, { kind: 'tearDown', row: '3' }],
    ['3: 204, busy by its own word', { answer: 'removed', ownSignal: 'busy' }, { kind: 'waitEnded', row: '3', until: 'jobDeadline' }],
    ['3: 204, and no word of its own: it may have just started a job', { answer: 'removed' }, { kind: 'waitEnded', row: '3', until: 'settled' }],
    ['3: 204, stop accepted', { answer: 'removed', stop: 'stop' }, { kind: 'stopPod', row: '3' }],

    ['4a: 404 of a held id, ended', { answer: 'absent', ended: true }, { kind: 'tearDown', row: '4a' }],
    ['4a: 404 of a held id, idle', { answer: 'absent', ownSignal: 'idle', idleConfirmed: true }, { kind: 'tearDown', row: '4a' }],
    ['4a: 404 of a held id, busy', { answer: 'absent', ownSignal: 'busy' }, { kind: 'waitEnded', until: 'jobDeadline' }],
    ['4a: 404, never started', { ...ownRegistration, answer: 'absent', started: false }, { kind: 'tearDown', row: '4a' }],
    ['4a: 404, ended, whoever registered it', { ...ownRegistration, answer: 'absent', ended: true }, { kind: 'tearDown', row: '4a' }],
    ['4b: not known, registration deadline out, idle', { ...ownRegistration, answer: 'absent', registrationOver: true, ownSignal: 'idle', idleConfirmed: true }, { kind: 'tearDown', row: '4b' }],
    ['4b: not known, registration deadline out, silent', { ...ownRegistration, answer: 'absent', registrationOver: true }, { kind: 'waitEnded', row: '4b', until: 'settled' }],
    ['4c: not known, may be about to register', { ...ownRegistration, answer: 'absent' }, { kind: 'lookAgain', row: '4c' }],
    ['4c: … also when it says that it is idle', { ...ownRegistration, answer: 'absent', ownSignal: 'idle' }, { kind: 'lookAgain', row: '4c' }],
    ['4: busy by its own signal beats any 404', { ...ownRegistration, answer: 'absent', ownSignal: 'busy' }, { kind: 'waitEnded', row: '4', until: 'jobDeadline' }],
    ['4: … even with the registration deadline out', { ...ownRegistration, answer: 'absent', ownSignal: 'busy', registrationOver: true }, { kind: 'waitEnded', row: '4', until: 'jobDeadline' }],
    ['4: but not an accepted stop', { ...ownRegistration, answer: 'absent', ownSignal: 'busy', stop: 'stop' }, { kind: 'stopPod' }],
    ['4: nor may it look again for ever under a stop', { ...ownRegistration, answer: 'absent', stop: 'stop' }, { kind: 'stopPod' }],

    ['5: busy (422), stop accepted', { answer: 'busy', stop: 'stop' }, { kind: 'stopPod', row: '5' }],
    ['5: busy (422), static, stop accepted', { answer: 'busy', stop: 'stop', ephemeral: false }, { kind: 'stopPod', row: '5' }],
    ['5: … and asked for already', { answer: 'busy', stop: 'stop', stopRequested: true }, { kind: 'waitEnded', row: '5', until: 'terminated' }],
    ['5: stop accepted, nothing asked yet: unregister first', { stop: 'stop' }, { kind: 'askRemoval' }],
    ['5: … also when a job runs', { stop: 'stop', ownSignal: 'busy' }, { kind: 'askRemoval' }],
    ['5: stop accepted, the CI server does not answer', { stop: 'stop', patienceOver: true }, { kind: 'stopPod', row: '5' }],
    ['5: pod terminating', { stop: 'stop', patienceOver: true, stopRequested: true }, { kind: 'waitEnded', row: '5', until: 'terminated' }],
    ['5: force asks nobody', { stop: 'force' }, { kind: 'stopPod', row: '5' }],
    ['5: force, pod terminating', { stop: 'force', stopRequested: true }, { kind: 'waitEnded', until: 'terminated' }],
    ['5: force, ended: the registration still has to go', { stop: 'force', stopRequested: true, ended: true }, { kind: 'askRemoval' }],

    ['6: busy (422), ephemeral, alive', { answer: 'busy' }, { kind: 'waitEnded', row: '6', until: 'busyRecheck' }],
    ['6: ephemeral, busy by its own word: not even asked', { ownSignal: 'busy' }, { kind: 'waitEnded', row: '6', until: 'busyRecheck' }],
    ['7: busy (422), static, alive', { answer: 'busy', ephemeral: false }, { kind: 'askRemoval', row: '7' }],
    ['7: static, busy by its own word: asked, 422 is the safe answer', { ownSignal: 'busy', ephemeral: false }, { kind: 'askRemoval' }],
    ['8: busy (422), ended', { answer: 'busy', ended: true, exitCode: 137 }, { kind: 'handOff', row: '8' }],
    ['8: busy (422), static, gone without an exit code', { answer: 'busy', ended: true, ephemeral: false }, { kind: 'handOff', row: '8' }],
    ['8: busy (422), ended by our stop', { answer: 'busy', ended: true, exitCode: 143, stop: 'stop', stopRequested: true }, { kind: 'handOff', row: '8' }],

    // Rows 9, 10 and 11 are retries inside the activity that asks; until it answers, the table asks.
    ['9-11: no answer yet, alive', {}, { kind: 'askRemoval' }],
    ['9-11: no answer yet, ended', { ended: true }, { kind: 'askRemoval' }],
  ])('%s', (_what, facts, expected) => {
    expect(decideUnregistration({ ...alive, ...facts })).toMatchObject(expected);
  });
});

describe('what holds for every combination of facts', () => {
  const decided = [...everyCombination()].map((facts) => ({ facts, action: decideUnregistration(facts) }));
  /** The combinations that break a rule: none, and the first few are shown if there are. */
  const violations = (rule: (facts: UnregistrationFacts, action: UnregistrationAction) => boolean) =>
    decided.filter(({ facts, action }) => !rule(facts, action)).slice(0, 3);

  test('all of them are tried', () => {
    expect(decided).toHaveLength(2 ** 12 * 3 * 3 * 4 * 3);
  });

  test('there is a step, with a reason that an operator can read', () => {
    expect(violations((_, action) => action.row !== '' && action.why.length > 5)).toEqual([]);
  });

  test('a pod with a job by its own word is never stopped or torn down unless a stop was accepted', () => {
    const underJob = (f: UnregistrationFacts) => f.started && !f.ended && f.ownSignal === 'busy' && f.stop === undefined;
    expect(violations((f, action) => !(underJob(f) && (action.kind === 'stopPod' || action.kind === 'tearDown')))).toEqual([]);
    expect(decided.filter(({ facts }) => underJob(facts)).length).toBeGreaterThan(1_000);
  });

  test('a live pod is torn down only when its own word says idle, or when its container never started', () => {
    expect(violations((f, action) => action.kind !== 'tearDown' || f.ended || !f.started || (f.ownSignal === 'idle' && f.idleConfirmed))).toEqual([]);
  });

  test('a live pod that was not asked to go goes only once its registration is gone, or will never be', () => {
    const unregistered = (f: UnregistrationFacts) => f.proven || f.answer === 'removed' || f.answer === 'absent';
    const goes = (action: UnregistrationAction) => action.kind === 'tearDown' || action.kind === 'stopPod';
    expect(violations((f, action) => f.ended || f.stop !== undefined || !goes(action) || unregistered(f))).toEqual([]);
  });

  test('busy (422) never ends a live pod that was not asked to go', () => {
    expect(violations((f, action) => f.proven || f.answer !== 'busy' || f.ended || f.stop !== undefined || ['askRemoval', 'waitEnded'].includes(action.kind))).toEqual([]);
  });

  test('under a stop nothing waits for the CI server or for the job: only for the termination that was asked for', () => {
    expect(
      violations((f, action) => {
        if (f.ended || f.stop === undefined) return true;
        if (action.kind === 'lookAgain' || action.kind === 'handOff') return false;
        if (action.kind === 'askRemoval') return f.stop !== 'force' && !f.patienceOver;
        return action.kind !== 'waitEnded' || (f.stopRequested && action.until === 'terminated');
      }),
    ).toEqual([]);
  });

  test('a stop is asked for once', () => {
    expect(violations((f, action) => !(f.stopRequested && action.kind === 'stopPod'))).toEqual([]);
  });

  test('an ended runner waits for nothing but the CI server', () => {
    expect(violations((f, action) => !f.ended || ['tearDown', 'askRemoval', 'handOff'].includes(action.kind))).toEqual([]);
  });

  test('a registration is handed on only for an ended runner, and never one that is proven gone', () => {
    expect(violations((f, action) => action.kind !== 'handOff' || (f.ended && !f.proven && f.answer === 'busy'))).toEqual([]);
  });

  test('a life without proof ends only on an answer, or on an ephemeral runner’s own exit 0', () => {
    expect(violations((f, action) => action.kind !== 'tearDown' || f.proven || (f.answer !== undefined && f.answer !== 'busy') || (f.ephemeral && f.exitCode === 0 && f.sawJob))).toEqual([]);
  });
});

function* everyCombination(): Generator<UnregistrationFacts> {
  const flags = ['proven', 'ephemeral', 'started', 'ended', 'sawJob', 'toldToGo', 'heldId', 'registrationOver', 'patienceOver', 'stopRequested', 'settled', 'idleConfirmed'] as const;
  for (let bits = 0; bits < 2 ** flags.length; bits++) {
    const booleans = Object.fromEntries(flags.map((flag, index) => [flag, (bits & (1 << index)) !== 0])) as Record<(typeof flags)[number], boolean>;
    for (const exitCode of [undefined, 0, 1]) {
      for (const ownSignal of ['idle', 'busy', 'unknown'] as const) {
        for (const answer of [undefined, 'removed', 'absent', 'busy'] as const) {
          for (const stop of [undefined, 'stop', 'force'] as const) {
            yield {
              ...booleans,
              ownSignal,
              ...(exitCode === undefined ? {} : { exitCode }),
              ...(answer === undefined ? {} : { answer }),
              ...(stop === undefined ? {} : { stop }),
            };
          }
        }
      }
    }
  }
}
