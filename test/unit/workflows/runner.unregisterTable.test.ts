import { describe, expect, test } from '@jest/globals';
import { omitUndefined } from '../../../core/domain/omitUndefined.ts';
import {
  applyEvent,
  initialProgress,
  type UnregistrationProgress,
  type WaitKind,
  type ObservedFacts,
  type UnregistrationFacts,
  type UnregistrationEvent,
} from '../../../workflows/runner/unregisterFacts.ts';
import {
  ROWS,
  decideUnregistration,
  type Row,
  type UnregistrationAction,
} from '../../../workflows/runner/unregisterTable.ts';

/** An ephemeral JIT runner, alive, that says nothing. */
const seen: ObservedFacts = {
  ephemeral: true,
  started: true,
  ended: false,
  hadJob: false,
  terminationRequested: false,
  observedActivity: 'unknown',
  wasRegistered: true,
  registrationExpired: false,
};
/** … and that nothing was asked about yet. */
const alive: UnregistrationFacts = { ...seen, ...initialProgress() };
/** A static runner that registers itself: its id is not held. */
const ownRegistration = { ephemeral: false, wasRegistered: false } as const;
type Case = [
  what: string,
  facts: Partial<UnregistrationFacts>,
  expected: Partial<UnregistrationAction>,
];

describe('the decision table, row by row', () => {
  test.each<Case>([
    ['1: proven, ended', { absentSinceMs: 1, ended: true }, { kind: 'tearDown', row: '1' }],
    [
      '1: proven, its container never started, as far as is known',
      { absentSinceMs: 1, started: false },
      { kind: 'refreshPod', row: '1' },
    ],
    [
      '1: … and it has not',
      { absentSinceMs: 1, started: false, podRefreshed: true },
      { kind: 'tearDown', row: '1', unlessStarted: true },
    ],
    [
      '1: proven, alive and idle by its own word',
      {
        absentSinceMs: 1,
        observedActivity: 'idle',
        expiredWait: 'idleConfirmed',
        podRefreshed: true,
      },
      { kind: 'tearDown', row: '1', unlessBusy: true },
    ],
    [
      '1: proven, alive and busy',
      { absentSinceMs: 1, observedActivity: 'busy' },
      { kind: 'wait', until: 'jobDeadline' },
    ],
    [
      '1: proven, busy by an event, idle by its pod',
      { absentSinceMs: 1, observedActivity: 'busy', idleInDoubt: true },
      { kind: 'refreshPod', row: '1' },
    ],
    [
      '1: ... looked at, and still in doubt',
      { absentSinceMs: 1, observedActivity: 'busy', idleInDoubt: true, podRefreshed: true },
      { kind: 'wait', until: 'busyCheck' },
    ],
    ['1: proven, alive and silent', { absentSinceMs: 1 }, { kind: 'wait', until: 'settled' }],
    [
      '1: proven, alive, silent, and its time to end is over',
      { absentSinceMs: 1, expiredWait: 'settled' },
      { kind: 'stopPod' },
    ],
    [
      '1: … that stop is asked for once',
      { absentSinceMs: 1, expiredWait: 'settled', stopped: 'stop' },
      { kind: 'wait', until: 'terminated' },
    ],
    [
      '1: proven, busy, and its time to end is over: the job goes on',
      { absentSinceMs: 1, expiredWait: 'settled', observedActivity: 'busy' },
      { kind: 'wait', until: 'jobDeadline' },
    ],
    [
      '1: proven, busy, stop accepted',
      { absentSinceMs: 1, observedActivity: 'busy', stop: 'stop' },
      { kind: 'stopPod', row: '1' },
    ],

    [
      '2: ephemeral, exit 0 after a job',
      { ended: true, exitCode: 0, hadJob: true },
      { kind: 'tearDown', row: '2' },
    ],
    [
      '2: … whatever the CI server said before',
      { ended: true, exitCode: 0, hadJob: true, removalResult: 'busy' },
      { kind: 'tearDown', row: '2' },
    ],
    ['2 not: exit 0 without a job', { ended: true, exitCode: 0 }, { kind: 'remove' }],
    ['2 not: another exit code', { ended: true, exitCode: 1, hadJob: true }, { kind: 'remove' }],
    ['2 not: gone without an exit code', { ended: true, hadJob: true }, { kind: 'remove' }],
    [
      '2 not: a static runner',
      { ended: true, exitCode: 0, hadJob: true, ephemeral: false },
      { kind: 'remove' },
    ],
    [
      '2 not: told to go, it may have left its job with exit 0',
      { ended: true, exitCode: 0, hadJob: true, stop: 'stop', stopped: 'stop' },
      { kind: 'remove' },
    ],

    [
      '2 not: evicted, it may have left its job with exit 0',
      { ended: true, exitCode: 0, hadJob: true, terminationRequested: true },
      { kind: 'remove' },
    ],

    [
      '3: 204, silent, and it does not end with its registration',
      { removalResult: 'removed', outlivesRegistration: true },
      { kind: 'stopPod', row: '3', mode: 'stop', overdue: false },
    ],
    [
      '1: … and it has been asked to stop',
      { absentSinceMs: 1, outlivesRegistration: true, stopped: 'stop' },
      { kind: 'wait', row: '1', until: 'terminated' },
    ],
    [
      '3: … it is idle by its own word: torn down as any other',
      { removalResult: 'removed', outlivesRegistration: true, observedActivity: 'idle' },
      { kind: 'wait', row: '3', until: 'idleConfirmed' },
    ],
    [
      '3: … it is busy by its own word: its job may finish',
      { removalResult: 'removed', outlivesRegistration: true, observedActivity: 'busy' },
      { kind: 'wait', row: '3', until: 'jobDeadline' },
    ],
    [
      '4a: … its registration has gone before, perhaps with its job: it may be ending',
      { removalResult: 'absent', outlivesRegistration: true },
      { kind: 'wait', row: '4a', until: 'settled' },
    ],
    ['3: 204, ended', { removalResult: 'removed', ended: true }, { kind: 'tearDown', row: '3' }],
    [
      '3: 204, idle by its own word, which may be old',
      { removalResult: 'removed', observedActivity: 'idle' },
      { kind: 'wait', row: '3', until: 'idleConfirmed' },
    ],
    [
      '3: … and still after a moment, as far as is known',
      { removalResult: 'removed', observedActivity: 'idle', expiredWait: 'idleConfirmed' },
      { kind: 'refreshPod', row: '3' },
    ],
    [
      '3: … and it is',
      {
        removalResult: 'removed',
        observedActivity: 'idle',
        expiredWait: 'idleConfirmed',
        podRefreshed: true,
      },
      { kind: 'tearDown', row: '3' },
    ],
    [
      '3: 204, busy by its own word',
      { removalResult: 'removed', observedActivity: 'busy' },
      { kind: 'wait', row: '3', until: 'jobDeadline' },
    ],
    [
      '3: 204, and no word of its own: it may have just started a job',
      { removalResult: 'removed' },
      { kind: 'wait', row: '3', until: 'settled' },
    ],
    [
      '3: 204, stop accepted',
      { removalResult: 'removed', stop: 'stop' },
      { kind: 'stopPod', row: '3' },
    ],

    [
      '4a: 404 of a held id, ended',
      { removalResult: 'absent', ended: true },
      { kind: 'tearDown', row: '4a' },
    ],
    [
      '4a: 404 of an id that a list had, idle',
      {
        ...ownRegistration,
        removalResult: 'absent',
        observedActivity: 'idle',
        expiredWait: 'idleConfirmed',
        podRefreshed: true,
      },
      { kind: 'tearDown', row: '4a' },
    ],
    [
      '4a: 404 of a held id, idle',
      {
        removalResult: 'absent',
        observedActivity: 'idle',
        expiredWait: 'idleConfirmed',
        podRefreshed: true,
      },
      { kind: 'tearDown', row: '4a' },
    ],
    [
      '4a: 404 of a held id, busy',
      { removalResult: 'absent', observedActivity: 'busy' },
      { kind: 'wait', until: 'jobDeadline' },
    ],
    [
      '4a: 404, never started',
      { ...ownRegistration, removalResult: 'absent', started: false, podRefreshed: true },
      { kind: 'tearDown', row: '4a', unlessStarted: true },
    ],
    [
      '4a: 404, ended, whoever registered it',
      { ...ownRegistration, removalResult: 'absent', ended: true },
      { kind: 'tearDown', row: '4a' },
    ],
    [
      '4a: not listed, its container never started, as far as is known',
      { ...ownRegistration, removalResult: 'unlisted', started: false },
      { kind: 'refreshPod', row: '4a' },
    ],
    [
      '4a: … and it has not: stopped, and asked about once more',
      { ...ownRegistration, removalResult: 'unlisted', started: false, podRefreshed: true },
      { kind: 'stopPod', row: '4a', unlessStarted: true },
    ],
    [
      '4b: not listed, registration deadline out, idle: stopped, and asked about once more',
      {
        ...ownRegistration,
        removalResult: 'unlisted',
        registrationExpired: true,
        observedActivity: 'idle',
        expiredWait: 'idleConfirmed',
        podRefreshed: true,
      },
      { kind: 'stopPod', row: '4b' },
    ],
    [
      '4b: not listed, registration deadline out, silent',
      { ...ownRegistration, removalResult: 'unlisted', registrationExpired: true },
      { kind: 'wait', row: '4b', until: 'settled' },
    ],
    [
      '4c: not listed, may be about to register',
      { ...ownRegistration, removalResult: 'unlisted' },
      { kind: 'wait', row: '4c', until: 'absentCheck' },
    ],
    [
      '4c: … also when it says that it is idle',
      { ...ownRegistration, removalResult: 'unlisted', observedActivity: 'idle' },
      { kind: 'wait', row: '4c', until: 'absentCheck' },
    ],
    [
      '4d: not listed, ended: the list may be from before',
      { ...ownRegistration, removalResult: 'unlisted', ended: true },
      { kind: 'wait', row: '4d', until: 'listRecheck' },
    ],
    [
      '4d: not listed, online: the list may be from before',
      {
        ...ownRegistration,
        wasRegistered: true,
        removalResult: 'unlisted',
        observedActivity: 'idle',
      },
      { kind: 'wait', row: '4d', until: 'listRecheck' },
    ],
    [
      '4: busy by its own signal beats any list',
      { ...ownRegistration, removalResult: 'unlisted', observedActivity: 'busy' },
      { kind: 'wait', row: '4', until: 'jobDeadline' },
    ],
    [
      '4: … even with the registration deadline out',
      {
        ...ownRegistration,
        removalResult: 'unlisted',
        observedActivity: 'busy',
        registrationExpired: true,
      },
      { kind: 'wait', row: '4', until: 'jobDeadline' },
    ],
    [
      '4: but not an accepted stop',
      { ...ownRegistration, removalResult: 'unlisted', observedActivity: 'busy', stop: 'stop' },
      { kind: 'stopPod' },
    ],
    [
      '4: nor may it look again for ever under a stop',
      { ...ownRegistration, removalResult: 'unlisted', stop: 'stop' },
      { kind: 'stopPod' },
    ],

    [
      '5: busy (422), stop accepted',
      { removalResult: 'busy', stop: 'stop' },
      { kind: 'stopPod', row: '5' },
    ],
    [
      '5: busy (422), static, stop accepted',
      { removalResult: 'busy', stop: 'stop', ephemeral: false },
      { kind: 'stopPod', row: '5' },
    ],
    [
      '5: … and asked for already',
      { removalResult: 'busy', stop: 'stop', stopped: 'stop' },
      { kind: 'wait', row: '5', until: 'terminated' },
    ],
    ['5: stop accepted, nothing asked yet: unregister first', { stop: 'stop' }, { kind: 'remove' }],
    ['5: … also when a job runs', { stop: 'stop', observedActivity: 'busy' }, { kind: 'remove' }],
    [
      '5: stop accepted, the CI server does not answer',
      { stop: 'stop', expiredWait: 'stopResponse' },
      { kind: 'stopPod', row: '5' },
    ],
    [
      '5: pod terminating',
      { stop: 'stop', stopped: 'stop' },
      { kind: 'wait', row: '5', until: 'terminated' },
    ],
    [
      '5: pod terminating, although nobody had asked for a stop',
      { ephemeral: false, stopped: 'stop' },
      { kind: 'wait', row: '5', until: 'terminated' },
    ],
    [
      '5: … for longer than its grace',
      { stop: 'stop', stopped: 'stop', expiredWait: 'terminated' },
      { kind: 'stopPod', row: '5', mode: 'force', overdue: true },
    ],
    [
      '5: a stop that becomes a force',
      { stop: 'force', stopped: 'stop' },
      { kind: 'stopPod', row: '5', mode: 'force', overdue: false },
    ],
    ['5: force asks nobody', { stop: 'force' }, { kind: 'stopPod', row: '5' }],
    [
      '5: force, pod terminating',
      { stop: 'force', stopped: 'force' },
      { kind: 'wait', until: 'terminated' },
    ],
    [
      '5: force, ended: the registration still has to go',
      { stop: 'force', stopped: 'force', ended: true },
      { kind: 'remove' },
    ],

    [
      '6: busy (422), ephemeral, alive',
      { removalResult: 'busy' },
      { kind: 'wait', row: '6', until: 'busyCheck' },
    ],
    [
      '6: ephemeral, busy by its own signal, and its end has not come in ten minutes',
      { observedActivity: 'busy', expiredWait: 'busyCheck' },
      { kind: 'refreshPod', row: '6' },
    ],
    [
      '6: ... looked at, and busy still',
      { observedActivity: 'busy', expiredWait: 'busyCheck', podRefreshed: true },
      { kind: 'wait', row: '6', until: 'busyCheck' },
    ],
    [
      '6: ephemeral, idle by its own word, which comes seconds late: looked at first',
      { observedActivity: 'idle' },
      { kind: 'refreshPod', row: '6' },
    ],
    [
      '3-11: … and it is',
      { observedActivity: 'idle', podRefreshed: true },
      { kind: 'remove', row: '3-11', onBusy: 'return' },
    ],
    [
      '6: ephemeral, busy by its own word: not even asked',
      { observedActivity: 'busy' },
      { kind: 'wait', row: '6', until: 'busyCheck' },
    ],
    [
      '6a: a server that would end the job is not asked while nothing says that there is none',
      { removalEndsJob: true },
      { kind: 'wait', row: '6a', until: 'busyCheck' },
    ],
    [
      '6a: … nor about a static runner that is busy',
      { removalEndsJob: true, ephemeral: false, observedActivity: 'busy' },
      { kind: 'wait', row: '6a', until: 'busyCheck' },
    ],
    [
      '6a: … one that is idle by its own word is looked at first',
      { removalEndsJob: true, ephemeral: false, observedActivity: 'idle' },
      { kind: 'refreshPod', row: '6a' },
    ],
    [
      '3-11: … and it is',
      { removalEndsJob: true, ephemeral: false, observedActivity: 'idle', podRefreshed: true },
      { kind: 'remove', row: '3-11', onBusy: 'return' },
    ],
    [
      '3-11: … or its container never started',
      { removalEndsJob: true, started: false, podRefreshed: true },
      { kind: 'remove', row: '3-11', onBusy: 'return' },
    ],
    [
      '3-11: … or it has ended',
      { removalEndsJob: true, ended: true },
      { kind: 'remove', row: '3-11' },
    ],
    [
      '3-11: … or its job is to be stopped anyway',
      { removalEndsJob: true, stop: 'stop' },
      { kind: 'remove', row: '3-11' },
    ],
    [
      '6: … a static runner that is busy after all is not asked for again and again',
      { removalEndsJob: true, ephemeral: false, removalResult: 'busy' },
      { kind: 'wait', row: '6', until: 'busyCheck' },
    ],
    [
      '7: static, alive: asked again for as long as it is busy (422)',
      { ephemeral: false },
      { kind: 'remove', row: '7', onBusy: 'retry' },
    ],
    [
      '7: … also by its own word: 422 is the safe answer',
      { observedActivity: 'busy', ephemeral: false },
      { kind: 'remove', row: '7', onBusy: 'retry' },
    ],
    [
      '7 not: under a stop it is asked once',
      { ephemeral: false, stop: 'stop' },
      { kind: 'remove', onBusy: 'return' },
    ],
    [
      '7 not: ended, the answer decides',
      { ephemeral: false, ended: true },
      { kind: 'remove', onBusy: 'return' },
    ],
    [
      '8: busy (422), ended',
      { removalResult: 'busy', ended: true, exitCode: 137 },
      { kind: 'handOff', row: '8' },
    ],
    [
      '8: busy (422), static, gone without an exit code',
      { removalResult: 'busy', ended: true, ephemeral: false },
      { kind: 'handOff', row: '8' },
    ],
    [
      '8: busy (422), ended by our stop',
      { removalResult: 'busy', ended: true, exitCode: 143, stop: 'stop', stopped: 'stop' },
      { kind: 'handOff', row: '8' },
    ],

    [
      '8: no answer is to be had, ended',
      { removalResult: 'failed', ended: true },
      { kind: 'handOff', row: '8' },
    ],
    [
      '10: no answer is to be had, alive',
      { removalResult: 'failed' },
      { kind: 'wait', row: '10', until: 'credentialsRetry' },
    ],
    ['10: … and some time later', { expiredWait: 'credentialsRetry' }, { kind: 'remove' }],
    [
      '10: … when none is to be had again: at the same pace',
      { removalResult: 'failed', expiredWait: 'credentialsRetry' },
      { kind: 'wait', row: '10', until: 'credentialsRetry' },
    ],
    [
      '10 not: a stop waits for nobody',
      { removalResult: 'failed', stop: 'stop' },
      { kind: 'stopPod', row: '5' },
    ],

    // Rows 9, 10 and 11 are retries inside the activity that asks; until it answers, the table asks.
    ['9-11: no answer yet, alive', {}, { kind: 'remove' }],
    ['9-11: no answer yet, ended', { ended: true }, { kind: 'remove' }],
  ])('%s', (_what, facts, expected) => {
    expect(decideUnregistration({ ...alive, ...facts })).toMatchObject(expected);
  });
});

describe('what news does to the facts', () => {
  type News = [
    what: string,
    before: Partial<UnregistrationFacts>,
    news: UnregistrationEvent,
    after: Partial<UnregistrationProgress>,
  ];
  const at = { atMs: 7, listMaxAgeMs: 60_000 } as const;
  const removed = { kind: 'answered', answer: 'removed', retried: false, ...at } as const;
  const absent = { kind: 'answered', answer: 'absent', retried: false, ...at } as const;
  const unlisted = { kind: 'answered', answer: 'unlisted', retried: false, ...at } as const;
  const nothing = { removedWhileRunning: false, removalPending: false, podRefreshed: false };

  test.each<News>([
    [
      '204 proves it, and was under a runner that lived',
      {},
      removed,
      {
        ...nothing,
        removalResult: 'removed',
        removal: 'removed',
        absentSinceMs: 7,
        removedWhileRunning: true,
      },
    ],
    [
      '204 after the end',
      { ended: true },
      removed,
      { ...nothing, removalResult: 'removed', removal: 'removed', absentSinceMs: 7 },
    ],
    [
      '404 of a held id proves it',
      {},
      absent,
      { ...nothing, removalResult: 'absent', removal: 'absent', absentSinceMs: 7 },
    ],
    [
      'not listed, vanished, and nobody saw whether its container had started: the list may be from before',
      { wasRegistered: false, started: false, ended: true, endUnobserved: true },
      unlisted,
      { ...nothing, removalResult: 'unlisted', unlistedSinceMs: 7 },
    ],
    [
      '404 of an id that a list had proves it',
      { wasRegistered: false },
      absent,
      { ...nothing, removalResult: 'absent', removal: 'absent', absentSinceMs: 7 },
    ],
    [
      'not listed, may be about to register: proves nothing, and nothing is over yet',
      { wasRegistered: false },
      unlisted,
      { ...nothing, removalResult: 'unlisted' },
    ],
    [
      'not listed after the end: the list may be from before',
      { wasRegistered: false, ended: true },
      unlisted,
      { ...nothing, removalResult: 'unlisted', unlistedSinceMs: 7 },
    ],
    [
      'not listed, online: the list may be from before',
      {},
      unlisted,
      { ...nothing, removalResult: 'unlisted', unlistedSinceMs: 7 },
    ],
    [
      '… asked again too soon',
      { wasRegistered: false, ended: true, unlistedSinceMs: 7 },
      { ...unlisted, atMs: 60_006 },
      { ...nothing, removalResult: 'unlisted', unlistedSinceMs: 7 },
    ],
    [
      '… asked again after the list’s age: absent',
      { wasRegistered: false, ended: true, unlistedSinceMs: 7 },
      { ...unlisted, atMs: 60_007 },
      {
        ...nothing,
        removalResult: 'absent',
        removal: 'absent',
        absentSinceMs: 60_007,
        unlistedSinceMs: 7,
      },
    ],
    [
      '… after a try that may have removed it: absent, perhaps by us',
      { wasRegistered: false, ended: true, unlistedSinceMs: 7, removal: 'absentAfterRetry' },
      { ...unlisted, atMs: 60_007 },
      {
        ...nothing,
        removalResult: 'absent',
        removal: 'absentAfterRetry',
        absentSinceMs: 60_007,
        unlistedSinceMs: 7,
      },
    ],
    [
      'not listed, after a try that may have removed it under a runner that lived',
      {},
      { ...unlisted, retried: true },
      {
        ...nothing,
        removalResult: 'unlisted',
        removal: 'absentAfterRetry',
        removalPending: true,
        unlistedSinceMs: 7,
      },
    ],
    [
      'not listed, ended before its container started: it cannot have registered',
      { wasRegistered: false, started: false, ended: true },
      unlisted,
      { ...nothing, removalResult: 'absent', removal: 'absent', absentSinceMs: 7 },
    ],
    [
      'not listed, its container not started when it was seen last: it may have by now',
      { wasRegistered: false, started: false },
      unlisted,
      { ...nothing, removalResult: 'unlisted' },
    ],
    [
      'listed after all',
      { unlistedSinceMs: 7 },
      { kind: 'answered', answer: 'busy', retried: false, ...at },
      { ...nothing, removalResult: 'busy', removal: 'busy', unlistedSinceMs: 7 },
    ],
    [
      '404 to a repeated try: perhaps by us, under a runner that lived',
      {},
      { ...absent, retried: true },
      {
        ...nothing,
        removalResult: 'absent',
        removal: 'absentAfterRetry',
        absentSinceMs: 7,
        removedWhileRunning: true,
      },
    ],
    [
      '404 after a try whose answer is not known: the same, although it has ended since',
      { ended: true, removalPending: true },
      absent,
      {
        ...nothing,
        removalResult: 'absent',
        removal: 'absentAfterRetry',
        absentSinceMs: 7,
        removedWhileRunning: true,
        removalPending: true,
      },
    ],
    [
      '404 to a repeated try, ended before any: nobody lived',
      { ended: true },
      { ...absent, retried: true },
      { ...nothing, removalResult: 'absent', removal: 'absentAfterRetry', absentSinceMs: 7 },
    ],
    [
      '404 to a repeated try of an ephemeral runner after its job: it removed itself',
      { hadJob: true },
      { ...absent, retried: true },
      { ...nothing, removalResult: 'absent', removal: 'absentAfterRetry', absentSinceMs: 7 },
    ],
    [
      '422 proves nothing',
      {},
      { kind: 'answered', answer: 'busy', retried: false, ...at },
      { ...nothing, removalResult: 'busy', removal: 'busy' },
    ],
    [
      'an answer does not end a wait that was out of time: what has not registered by then is stopped',
      { expiredWait: 'settled' },
      { ...absent },
      {
        ...nothing,
        removalResult: 'absent',
        removal: 'absent',
        absentSinceMs: 7,
        expiredWait: 'settled',
      },
    ],
    [
      'called off while it lived: its answer is not known',
      {},
      { kind: 'removalCancelled' },
      { ...nothing, removalPending: true },
    ],
    ['called off after the end', { ended: true }, { kind: 'removalCancelled' }, nothing],
    [
      'failed',
      {},
      { kind: 'failed' },
      { ...nothing, removalResult: 'failed', removalPending: true },
    ],
    [
      'the response timeout: the response may still come',
      { stop: 'stop' },
      { kind: 'expiredWait', wait: 'stopResponse' },
      { ...nothing, expiredWait: 'stopResponse', removalPending: true },
    ],
    [
      'time to end by itself is over: asked again',
      { removalResult: 'absent', absentSinceMs: 1 },
      { kind: 'expiredWait', wait: 'settled' },
      { ...nothing, absentSinceMs: 1, expiredWait: 'settled' },
    ],
    [
      'idle for long enough: the answer stands',
      { removalResult: 'absent', podRefreshed: true },
      { kind: 'expiredWait', wait: 'idleConfirmed' },
      { ...nothing, removalResult: 'absent', expiredWait: 'idleConfirmed' },
    ],
    [
      'safety re-check: asked again',
      { removalResult: 'busy' },
      { kind: 'expiredWait', wait: 'busyCheck' },
      { ...nothing, expiredWait: 'busyCheck' },
    ],
    [
      'something changed: only what is proven, and done, stands',
      {
        removalResult: 'busy',
        absentSinceMs: 1,
        expiredWait: 'settled',
        podRefreshed: true,
        stopped: 'stop',
        removal: 'busy',
        removedWhileRunning: true,
        removalPending: true,
      },
      { kind: 'changed' },
      {
        podRefreshed: false,
        absentSinceMs: 1,
        stopped: 'stop',
        removal: 'busy',
        removedWhileRunning: true,
        removalPending: true,
      },
    ],
    [
      'looked: nothing else changes',
      { removalResult: 'removed', expiredWait: 'idleConfirmed' },
      { kind: 'podRefreshed' },
      { ...nothing, removalResult: 'removed', expiredWait: 'idleConfirmed', podRefreshed: true },
    ],
    [
      'stopped: the CI server is to be asked again',
      { removalResult: 'busy', stop: 'stop' },
      { kind: 'stopped', mode: 'stop' },
      { ...nothing, stopped: 'stop' },
    ],
  ])('%s', (_what, before, news, after) => {
    expect(applyEvent({ ...alive, ...before }, news)).toEqual(after);
  });
});

describe('every row can be reached', () => {
  const WAITS: readonly WaitKind[] = [
    'idleConfirmed',
    'settled',
    'terminated',
    'jobDeadline',
    'busyCheck',
    'absentCheck',
    'listRecheck',
    'credentialsRetry',
  ];
  const KINDS = [
    'handOff',
    'refreshPod',
    'remove',
    'stopPod',
    'tearDown',
    ...WAITS.map((wait) => `wait for ${wait}`),
  ];

  /** What may come next of an action, by what carries it out (unregister.ts). */
  function newsOf(action: UnregistrationAction, facts: UnregistrationFacts): UnregistrationEvent[] {
    const answered = (['removed', 'absent', 'unlisted', 'busy'] as const).flatMap((answer) =>
      [false, true].map(
        (retried) => ({ kind: 'answered', answer, retried, atMs: 1, listMaxAgeMs: 2 }) as const,
      ),
    );
    switch (action.kind) {
      case 'tearDown':
      case 'handOff':
        return [];
      case 'remove': {
        const heard = answered.filter(
          ({ answer }) => answer !== 'busy' || action.onBusy === 'return',
        );
        return [
          ...heard,
          { kind: 'removalCancelled' },
          { kind: 'failed' },
          ...(facts.stop !== undefined && !facts.ended
            ? [{ kind: 'expiredWait', wait: 'stopResponse' } as const]
            : []),
        ];
      }
      case 'stopPod':
        return [{ kind: 'stopped', mode: action.mode }];
      case 'refreshPod':
        return [{ kind: 'podRefreshed' }];
      case 'wait':
        return [{ kind: 'changed' }, { kind: 'expiredWait', wait: action.until }];
    }
  }

  /** What the life may see next: one thing more, and nothing goes back. */
  function* later(now: ObservedFacts): Generator<ObservedFacts> {
    yield now;
    if (!now.started) yield { ...now, started: true };
    for (const observedActivity of ['idle', 'busy', 'unknown'] as const)
      yield { ...now, observedActivity };
    yield { ...now, hadJob: true, observedActivity: 'busy' };
    if (!now.ended)
      for (const exitCode of [undefined, 0, 137])
        yield { ...now, ended: true, ...(exitCode === undefined ? {} : { exitCode }) };
    yield { ...now, terminationRequested: true };
    yield { ...now, registrationExpired: true };
    if (now.stop === undefined) yield { ...now, stop: 'stop' };
    yield { ...now, stop: 'force' };
  }

  test('from the first look at a runner, by what may happen next', () => {
    const rows = new Set<Row>();
    const kinds = new Set<string>();
    const known = new Set<string>();
    const next: UnregistrationFacts[] = [true, false].flatMap((ephemeral) =>
      [undefined, 1].flatMap((absentSinceMs) =>
        [undefined, true as const].map((removalEndsJob) => ({
          ...seen,
          ephemeral,
          started: false,
          wasRegistered: ephemeral,
          ...omitUndefined({ removalEndsJob }),
          ...initialProgress(absentSinceMs),
        })),
      ),
    );
    // Breadth first, until nothing is missing.
    for (const facts of next) {
      if (rows.size === ROWS.length && kinds.size === KINDS.length) break;
      const key = JSON.stringify(facts, Object.keys(facts).toSorted());
      if (known.has(key)) continue;
      known.add(key);
      const action = decideUnregistration(facts);
      rows.add(action.row);
      kinds.add(action.kind === 'wait' ? `wait for ${action.until}` : action.kind);
      for (const news of newsOf(action, facts))
        for (const then of later(seenOf(facts))) next.push({ ...then, ...applyEvent(facts, news) });
    }
    expect([...rows].toSorted()).toEqual([...ROWS].toSorted());
    expect([...kinds].toSorted()).toEqual([...KINDS].toSorted());
  });
});

function seenOf({
  ephemeral,
  removalEndsJob,
  started,
  ended,
  exitCode,
  hadJob,
  terminationRequested,
  observedActivity,
  wasRegistered,
  registrationExpired,
  stop,
}: UnregistrationFacts): ObservedFacts {
  return {
    ephemeral,
    started,
    ended,
    hadJob,
    terminationRequested,
    observedActivity,
    wasRegistered,
    registrationExpired,
    ...omitUndefined({ exitCode, stop, removalEndsJob }),
  };
}

describe('what holds for every combination of facts', () => {
  const decided = [...everyCombination()].map((facts) => ({
    facts,
    action: decideUnregistration(facts),
  }));
  /** The combinations that break a rule: none, and the first few are shown if there are. */
  const violations = (
    rule: (facts: UnregistrationFacts, action: UnregistrationAction) => boolean,
  ) => decided.filter(({ facts, action }) => !rule(facts, action)).slice(0, 3);

  test('all of them are tried', () => {
    expect(decided).toHaveLength(2 ** 6 * 3 * 3 * 6 * 3 * 3 * 6);
  });

  test('there is a step, with a reason that an operator can read', () => {
    expect(
      violations((_, action) => ROWS.includes(action.row) && action.reason.length > 5),
    ).toEqual([]);
  });

  test('a pod with a job by its own word is never stopped or torn down unless a stop was accepted', () => {
    const underJob = (f: UnregistrationFacts) =>
      f.started &&
      !f.ended &&
      f.observedActivity === 'busy' &&
      f.stop === undefined &&
      f.stopped === undefined;
    expect(
      violations(
        (f, action) => !(underJob(f) && (action.kind === 'stopPod' || action.kind === 'tearDown')),
      ),
    ).toEqual([]);
    expect(decided.filter(({ facts }) => underJob(facts)).length).toBeGreaterThan(1_000);
  });

  test('a live pod is torn down only when its own word says idle, or when its container never started', () => {
    expect(
      violations(
        (f, action) =>
          action.kind !== 'tearDown' ||
          f.ended ||
          !f.started ||
          (f.observedActivity === 'idle' && f.expiredWait === 'idleConfirmed' && f.podRefreshed),
      ),
    ).toEqual([]);
  });

  test('a pod whose container never started goes unasked only if it still has not', () => {
    const goes = (action: UnregistrationAction) =>
      action.kind === 'tearDown' || (action.kind === 'stopPod' && !action.overdue);
    const unstarted = (f: UnregistrationFacts) =>
      !f.started && !f.ended && f.stop === undefined && f.stopped === undefined;
    expect(
      violations(
        (f, action) =>
          !unstarted(f) || !goes(action) || (action.kind !== 'wait' && 'unlessStarted' in action),
      ),
    ).toEqual([]);
    expect(
      decided.filter(({ facts, action }) => unstarted(facts) && goes(action)).length,
    ).toBeGreaterThan(100);
  });

  test('a live pod that was not asked to go goes only once its registration is gone, or will never be', () => {
    const unregistered = (f: UnregistrationFacts) =>
      f.absentSinceMs !== undefined ||
      f.removalResult === 'removed' ||
      f.removalResult === 'absent' ||
      (f.removalResult === 'unlisted' && (f.registrationExpired || (!f.started && f.podRefreshed)));
    const goes = (action: UnregistrationAction) =>
      action.kind === 'tearDown' || action.kind === 'stopPod';
    expect(
      violations(
        (f, action) =>
          f.ended ||
          f.stop !== undefined ||
          f.stopped !== undefined ||
          !goes(action) ||
          unregistered(f),
      ),
    ).toEqual([]);
  });

  test('busy (422) never ends a live pod that was not asked to go', () => {
    expect(
      violations(
        (f, action) =>
          f.absentSinceMs !== undefined ||
          f.removalResult !== 'busy' ||
          f.ended ||
          f.stop !== undefined ||
          ['remove', 'wait'].includes(action.kind),
      ),
    ).toEqual([]);
  });

  test('under a stop nothing waits for the CI server or for the job: only for the termination that was asked for', () => {
    expect(
      violations((f, action) => {
        if (f.ended || f.stop === undefined) return true;
        if (action.kind === 'handOff') return false;
        if (action.kind === 'remove') return f.stop !== 'force' && f.expiredWait !== 'stopResponse';
        return action.kind !== 'wait' || (f.stopped !== undefined && action.until === 'terminated');
      }),
    ).toEqual([]);
  });

  test('a stop is asked for once in each strength, and once more when the pod outlives its grace', () => {
    const again = (f: UnregistrationFacts) =>
      f.stopped === 'force' || (f.stopped === 'stop' && f.stop !== 'force');
    expect(
      violations(
        (f, action) =>
          action.kind !== 'stopPod' ||
          !again(f) ||
          (f.expiredWait === 'terminated' && action.overdue),
      ),
    ).toEqual([]);
  });

  test('an ended runner waits for nothing but the CI server', () => {
    expect(
      violations(
        (f, action) =>
          !f.ended ||
          ['tearDown', 'remove', 'handOff'].includes(action.kind) ||
          action.row === '4d',
      ),
    ).toEqual([]);
  });

  test('a registration is handed on only for an ended runner, of which the CI server says that it is busy, or nothing', () => {
    expect(
      violations(
        (f, action) =>
          action.kind !== 'handOff' ||
          (f.ended && (f.removalResult === 'busy' || f.removalResult === 'failed')),
      ),
    ).toEqual([]);
  });

  test('a life without proof ends only on an answer, or on an ephemeral runner’s own exit 0', () => {
    expect(
      violations(
        (f, action) =>
          action.kind !== 'tearDown' ||
          f.absentSinceMs !== undefined ||
          f.removalResult === 'removed' ||
          f.removalResult === 'absent' ||
          (f.ephemeral && f.exitCode === 0 && f.hadJob),
      ),
    ).toEqual([]);
  });
});

function* everyCombination(): Generator<UnregistrationFacts> {
  const flags = [
    'ephemeral',
    'started',
    'ended',
    'wasRegistered',
    'registrationExpired',
    'podRefreshed',
  ] as const;
  const ends = [
    { hadJob: false, terminationRequested: false },
    { hadJob: true, terminationRequested: false, exitCode: 0 },
    { hadJob: true, terminationRequested: true, exitCode: 0 },
  ] as const;
  for (let bits = 0; bits < 2 ** flags.length; bits++) {
    const booleans = Object.fromEntries(
      flags.map((flag, index) => [flag, (bits & (1 << index)) !== 0]),
    ) as Record<(typeof flags)[number], boolean>;
    for (const end of ends) {
      for (const observedActivity of ['idle', 'busy', 'unknown'] as const) {
        for (const answer of [
          undefined,
          'removed',
          'absent',
          'unlisted',
          'busy',
          'failed',
        ] as const) {
          for (const stop of [undefined, 'stop', 'force'] as const) {
            for (const stopped of [undefined, 'stop', 'force'] as const) {
              for (const waited of [
                {},
                { absentSinceMs: 1 },
                { expiredWait: 'settled' },
                { expiredWait: 'idleConfirmed' },
                { expiredWait: 'stopResponse' },
                { expiredWait: 'terminated' },
              ] as const) {
                yield {
                  ...booleans,
                  ...end,
                  ...waited,
                  removedWhileRunning: false,
                  removalPending: false,
                  observedActivity,
                  ...omitUndefined({ removalResult: answer, stop, stopped }),
                };
              }
            }
          }
        }
      }
    }
  }
}
