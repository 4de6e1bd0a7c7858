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

/** An ephemeral JIT runner that runs and reports nothing. */
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
/** … for which no request was sent yet. */
const alive: UnregistrationFacts = { ...seen, ...initialProgress() };
/** A static runner that registers itself, so its id is unknown. */
const ownRegistration = { ephemeral: false, wasRegistered: false } as const;
type Case = [
  what: string,
  facts: Partial<UnregistrationFacts>,
  expected: Partial<UnregistrationAction>,
];

describe('the decision table, with its row numbers', () => {
  test.each<Case>([
    ['1: proven, ended', { absentSinceMs: 1, ended: true }, { kind: 'tearDown', row: '1' }],
    [
      '1: proven, its container never started, according to the last read',
      { absentSinceMs: 1, started: false },
      { kind: 'refreshPod', row: '1' },
    ],
    [
      '1: … confirmed by another read',
      { absentSinceMs: 1, started: false, podRefreshed: true },
      { kind: 'tearDown', row: '1', unlessStarted: true },
    ],
    [
      '1: proven, running and observed idle',
      {
        absentSinceMs: 1,
        observedActivity: 'idle',
        expiredWait: 'idleConfirmed',
        podRefreshed: true,
      },
      { kind: 'tearDown', row: '1', unlessBusy: true },
    ],
    [
      '1: proven, running and busy',
      { absentSinceMs: 1, observedActivity: 'busy' },
      { kind: 'wait', until: 'jobDeadline' },
    ],
    [
      '1: proven, busy according to an event, idle according to its pod',
      { absentSinceMs: 1, observedActivity: 'busy', idleInDoubt: true },
      { kind: 'refreshPod', row: '1' },
    ],
    [
      '1: ... read again, and still contradictory',
      { absentSinceMs: 1, observedActivity: 'busy', idleInDoubt: true, podRefreshed: true },
      { kind: 'wait', until: 'busyCheck' },
    ],
    [
      '1: proven, running and not observed',
      { absentSinceMs: 1 },
      { kind: 'wait', until: 'settled' },
    ],
    [
      '1: proven, running, not observed, and its time to end is over',
      { absentSinceMs: 1, expiredWait: 'settled' },
      { kind: 'stopPod' },
    ],
    [
      '1: … the stop is requested once',
      { absentSinceMs: 1, expiredWait: 'settled', stopped: 'stop' },
      { kind: 'wait', until: 'terminated' },
    ],
    [
      '1: proven, busy, and its time to end is over: the job continues',
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
      '2: … independent of earlier responses of the CI server',
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
      '2 not: stopped, so it may have exited with 0 during its job',
      { ended: true, exitCode: 0, hadJob: true, stop: 'stop', stopped: 'stop' },
      { kind: 'remove' },
    ],

    [
      '2 not: evicted, so it may have exited with 0 during its job',
      { ended: true, exitCode: 0, hadJob: true, terminationRequested: true },
      { kind: 'remove' },
    ],

    [
      '3: 204, not observed, and it does not end with its registration',
      { removalResult: 'removed', outlivesRegistration: true },
      { kind: 'stopPod', row: '3', mode: 'stop', overdue: false },
    ],
    [
      '1: … and its stop was requested',
      { absentSinceMs: 1, outlivesRegistration: true, stopped: 'stop' },
      { kind: 'wait', row: '1', until: 'terminated' },
    ],
    [
      '3: … observed idle: torn down like all others',
      { removalResult: 'removed', outlivesRegistration: true, observedActivity: 'idle' },
      { kind: 'wait', row: '3', until: 'idleConfirmed' },
    ],
    [
      '3: … observed busy: its job may finish',
      { removalResult: 'removed', outlivesRegistration: true, observedActivity: 'busy' },
      { kind: 'wait', row: '3', until: 'jobDeadline' },
    ],
    [
      '4a: … its registration was already gone, perhaps with its job: it may be ending',
      { removalResult: 'absent', outlivesRegistration: true },
      { kind: 'wait', row: '4a', until: 'settled' },
    ],
    ['3: 204, ended', { removalResult: 'removed', ended: true }, { kind: 'tearDown', row: '3' }],
    [
      '3: 204, observed idle, which may be outdated',
      { removalResult: 'removed', observedActivity: 'idle' },
      { kind: 'wait', row: '3', until: 'idleConfirmed' },
    ],
    [
      '3: … and still idle after the confirmation time, according to the last read',
      { removalResult: 'removed', observedActivity: 'idle', expiredWait: 'idleConfirmed' },
      { kind: 'refreshPod', row: '3' },
    ],
    [
      '3: … confirmed by another read',
      {
        removalResult: 'removed',
        observedActivity: 'idle',
        expiredWait: 'idleConfirmed',
        podRefreshed: true,
      },
      { kind: 'tearDown', row: '3' },
    ],
    [
      '3: 204, observed busy',
      { removalResult: 'removed', observedActivity: 'busy' },
      { kind: 'wait', row: '3', until: 'jobDeadline' },
    ],
    [
      '3: 204, not observed: it may have just started a job',
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
      '4a: 404, ended, with every kind of registration',
      { ...ownRegistration, removalResult: 'absent', ended: true },
      { kind: 'tearDown', row: '4a' },
    ],
    [
      '4a: not listed, its container never started, according to the last read',
      { ...ownRegistration, removalResult: 'unlisted', started: false },
      { kind: 'refreshPod', row: '4a' },
    ],
    [
      '4a: … confirmed by another read: stopped, and listed again',
      { ...ownRegistration, removalResult: 'unlisted', started: false, podRefreshed: true },
      { kind: 'stopPod', row: '4a', unlessStarted: true },
    ],
    [
      '4b: not listed, registration deadline over, idle: stopped, and listed again',
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
      '4b: not listed, registration deadline over, not observed',
      { ...ownRegistration, removalResult: 'unlisted', registrationExpired: true },
      { kind: 'wait', row: '4b', until: 'settled' },
    ],
    [
      '4c: not listed, may be about to register',
      { ...ownRegistration, removalResult: 'unlisted' },
      { kind: 'wait', row: '4c', until: 'absentCheck' },
    ],
    [
      '4c: … also when observed idle',
      { ...ownRegistration, removalResult: 'unlisted', observedActivity: 'idle' },
      { kind: 'wait', row: '4c', until: 'absentCheck' },
    ],
    [
      '4d: not listed, ended: the list may be outdated',
      { ...ownRegistration, removalResult: 'unlisted', ended: true },
      { kind: 'wait', row: '4d', until: 'listRecheck' },
    ],
    [
      '4d: not listed, online: the list may be outdated',
      {
        ...ownRegistration,
        wasRegistered: true,
        removalResult: 'unlisted',
        observedActivity: 'idle',
      },
      { kind: 'wait', row: '4d', until: 'listRecheck' },
    ],
    [
      '4: observed busy overrides every list',
      { ...ownRegistration, removalResult: 'unlisted', observedActivity: 'busy' },
      { kind: 'wait', row: '4', until: 'jobDeadline' },
    ],
    [
      '4: … even with the registration deadline over',
      {
        ...ownRegistration,
        removalResult: 'unlisted',
        observedActivity: 'busy',
        registrationExpired: true,
      },
      { kind: 'wait', row: '4', until: 'jobDeadline' },
    ],
    [
      '4: but does not override an accepted stop',
      { ...ownRegistration, removalResult: 'unlisted', observedActivity: 'busy', stop: 'stop' },
      { kind: 'stopPod' },
    ],
    [
      '4: and with a stop it is not listed again endlessly',
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
      '5: … and already requested',
      { removalResult: 'busy', stop: 'stop', stopped: 'stop' },
      { kind: 'wait', row: '5', until: 'terminated' },
    ],
    ['5: stop accepted, no request yet: unregister first', { stop: 'stop' }, { kind: 'remove' }],
    ['5: … also when a job runs', { stop: 'stop', observedActivity: 'busy' }, { kind: 'remove' }],
    [
      '5: stop accepted, the CI server does not respond',
      { stop: 'stop', expiredWait: 'stopResponse' },
      { kind: 'stopPod', row: '5' },
    ],
    [
      '5: pod terminating',
      { stop: 'stop', stopped: 'stop' },
      { kind: 'wait', row: '5', until: 'terminated' },
    ],
    [
      '5: pod terminating without a stop request',
      { ephemeral: false, stopped: 'stop' },
      { kind: 'wait', row: '5', until: 'terminated' },
    ],
    [
      '5: … for longer than its grace period',
      { stop: 'stop', stopped: 'stop', expiredWait: 'terminated' },
      { kind: 'stopPod', row: '5', mode: 'force', overdue: true },
    ],
    [
      '5: a stop that becomes a force',
      { stop: 'force', stopped: 'stop' },
      { kind: 'stopPod', row: '5', mode: 'force', overdue: false },
    ],
    ['5: force sends no request', { stop: 'force' }, { kind: 'stopPod', row: '5' }],
    [
      '5: force, pod terminating',
      { stop: 'force', stopped: 'force' },
      { kind: 'wait', until: 'terminated' },
    ],
    [
      '5: force, ended: the registration must still be removed',
      { stop: 'force', stopped: 'force', ended: true },
      { kind: 'remove' },
    ],

    [
      '6: busy (422), ephemeral, running',
      { removalResult: 'busy' },
      { kind: 'wait', row: '6', until: 'busyCheck' },
    ],
    [
      '6: ephemeral, observed busy, and not ended after ten minutes',
      { observedActivity: 'busy', expiredWait: 'busyCheck' },
      { kind: 'refreshPod', row: '6' },
    ],
    [
      '6: ... read again, and still busy',
      { observedActivity: 'busy', expiredWait: 'busyCheck', podRefreshed: true },
      { kind: 'wait', row: '6', until: 'busyCheck' },
    ],
    [
      '6: ephemeral, observed idle, which may be seconds late: read first',
      { observedActivity: 'idle' },
      { kind: 'refreshPod', row: '6' },
    ],
    [
      '3-11: … confirmed by another read',
      { observedActivity: 'idle', podRefreshed: true },
      { kind: 'remove', row: '3-11', onBusy: 'return' },
    ],
    [
      '6: ephemeral, observed busy: no request',
      { observedActivity: 'busy' },
      { kind: 'wait', row: '6', until: 'busyCheck' },
    ],
    [
      '6a: a server that would end the job gets no request while a job is possible',
      { removalEndsJob: true },
      { kind: 'wait', row: '6a', until: 'busyCheck' },
    ],
    [
      '6a: … also not for a busy static runner',
      { removalEndsJob: true, ephemeral: false, observedActivity: 'busy' },
      { kind: 'wait', row: '6a', until: 'busyCheck' },
    ],
    [
      '6a: … a runner that was observed idle is read first',
      { removalEndsJob: true, ephemeral: false, observedActivity: 'idle' },
      { kind: 'refreshPod', row: '6a' },
    ],
    [
      '3-11: … confirmed by another read',
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
      '3-11: … or its job will be stopped anyway',
      { removalEndsJob: true, stop: 'stop' },
      { kind: 'remove', row: '3-11' },
    ],
    [
      '6: … the removal of a static runner that is busy is not repeated',
      { removalEndsJob: true, ephemeral: false, removalResult: 'busy' },
      { kind: 'wait', row: '6', until: 'busyCheck' },
    ],
    [
      '7: static, running: repeated while it is busy (422)',
      { ephemeral: false },
      { kind: 'remove', row: '7', onBusy: 'retry' },
    ],
    [
      '7: … also when observed busy, because 422 is a safe response',
      { observedActivity: 'busy', ephemeral: false },
      { kind: 'remove', row: '7', onBusy: 'retry' },
    ],
    [
      '7 not: with a stop there is one request',
      { ephemeral: false, stop: 'stop' },
      { kind: 'remove', onBusy: 'return' },
    ],
    [
      '7 not: ended, the response decides',
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
      '8: busy (422), ended by a stop of Holdfast',
      { removalResult: 'busy', ended: true, exitCode: 143, stop: 'stop', stopped: 'stop' },
      { kind: 'handOff', row: '8' },
    ],

    [
      '8: no response, ended',
      { removalResult: 'failed', ended: true },
      { kind: 'handOff', row: '8' },
    ],
    [
      '10: no response, running',
      { removalResult: 'failed' },
      { kind: 'wait', row: '10', until: 'credentialsRetry' },
    ],
    ['10: … and a while later', { expiredWait: 'credentialsRetry' }, { kind: 'remove' }],
    [
      '10: … no response again: the same interval',
      { removalResult: 'failed', expiredWait: 'credentialsRetry' },
      { kind: 'wait', row: '10', until: 'credentialsRetry' },
    ],
    [
      '10 not: a stop does not wait',
      { removalResult: 'failed', stop: 'stop' },
      { kind: 'stopPod', row: '5' },
    ],

    // Rows 9, 10 and 11 are retries inside the activity. Until it has a result, the table requests the removal.
    ['9-11: no response yet, running', {}, { kind: 'remove' }],
    ['9-11: no response yet, ended', { ended: true }, { kind: 'remove' }],
  ])('%s', (_what, facts, expected) => {
    expect(decideUnregistration({ ...alive, ...facts })).toMatchObject(expected);
  });
});

describe('how events change the facts', () => {
  type EventCase = [
    what: string,
    before: Partial<UnregistrationFacts>,
    event: UnregistrationEvent,
    after: Partial<UnregistrationProgress>,
  ];
  const at = { atMs: 7, listMaxAgeMs: 60_000 } as const;
  const removed = { kind: 'answered', answer: 'removed', retried: false, ...at } as const;
  const absent = { kind: 'answered', answer: 'absent', retried: false, ...at } as const;
  const unlisted = { kind: 'answered', answer: 'unlisted', retried: false, ...at } as const;
  const nothing = { removedWhileRunning: false, removalPending: false, podRefreshed: false };

  test.each<EventCase>([
    [
      '204 is proof, and removed a running runner',
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
      '404 of a known id is proof',
      {},
      absent,
      { ...nothing, removalResult: 'absent', removal: 'absent', absentSinceMs: 7 },
    ],
    [
      'not listed, vanished, and unknown whether its container had started: the list may be outdated',
      { wasRegistered: false, started: false, ended: true, endUnobserved: true },
      unlisted,
      { ...nothing, removalResult: 'unlisted', unlistedSinceMs: 7 },
    ],
    [
      '404 of an id from a list is proof',
      { wasRegistered: false },
      absent,
      { ...nothing, removalResult: 'absent', removal: 'absent', absentSinceMs: 7 },
    ],
    [
      'not listed, may be about to register: no proof, and no deadline is over yet',
      { wasRegistered: false },
      unlisted,
      { ...nothing, removalResult: 'unlisted' },
    ],
    [
      'not listed after the end: the list may be outdated',
      { wasRegistered: false, ended: true },
      unlisted,
      { ...nothing, removalResult: 'unlisted', unlistedSinceMs: 7 },
    ],
    [
      'not listed, online: the list may be outdated',
      {},
      unlisted,
      { ...nothing, removalResult: 'unlisted', unlistedSinceMs: 7 },
    ],
    [
      '… listed again too early',
      { wasRegistered: false, ended: true, unlistedSinceMs: 7 },
      { ...unlisted, atMs: 60_006 },
      { ...nothing, removalResult: 'unlisted', unlistedSinceMs: 7 },
    ],
    [
      '… listed again after the maximum age of lists: absent',
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
      '… after an attempt that may have removed it: absent, perhaps removed by Holdfast',
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
      'not listed, after an attempt that may have removed a running runner',
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
      'not listed, its container not started at the last read: it may have started since',
      { wasRegistered: false, started: false },
      unlisted,
      { ...nothing, removalResult: 'unlisted' },
    ],
    [
      'listed again',
      { unlistedSinceMs: 7 },
      { kind: 'answered', answer: 'busy', retried: false, ...at },
      { ...nothing, removalResult: 'busy', removal: 'busy', unlistedSinceMs: 7 },
    ],
    [
      '404 to a repeated attempt: perhaps removed by Holdfast, while it was running',
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
      '404 after an attempt with an unknown response: the same, although it has ended since',
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
      '404 to a repeated attempt, ended before the first one: it was not running',
      { ended: true },
      { ...absent, retried: true },
      { ...nothing, removalResult: 'absent', removal: 'absentAfterRetry', absentSinceMs: 7 },
    ],
    [
      '404 to a repeated attempt for an ephemeral runner after its job: it removed itself',
      { hadJob: true },
      { ...absent, retried: true },
      { ...nothing, removalResult: 'absent', removal: 'absentAfterRetry', absentSinceMs: 7 },
    ],
    [
      '422 is no proof',
      {},
      { kind: 'answered', answer: 'busy', retried: false, ...at },
      { ...nothing, removalResult: 'busy', removal: 'busy' },
    ],
    [
      'a response does not reset an expired wait: a runner that has not registered by then is stopped',
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
      'cancelled while it was running: the response is unknown',
      {},
      { kind: 'removalCancelled' },
      { ...nothing, removalPending: true },
    ],
    ['cancelled after the end', { ended: true }, { kind: 'removalCancelled' }, nothing],
    [
      'failed',
      {},
      { kind: 'failed' },
      { ...nothing, removalResult: 'failed', removalPending: true },
    ],
    [
      'the response timeout: the response may still arrive',
      { stop: 'stop' },
      { kind: 'expiredWait', wait: 'stopResponse' },
      { ...nothing, expiredWait: 'stopResponse', removalPending: true },
    ],
    [
      'the time to end by itself is over: requested again',
      { removalResult: 'absent', absentSinceMs: 1 },
      { kind: 'expiredWait', wait: 'settled' },
      { ...nothing, absentSinceMs: 1, expiredWait: 'settled' },
    ],
    [
      'idle for long enough: the response is kept',
      { removalResult: 'absent', podRefreshed: true },
      { kind: 'expiredWait', wait: 'idleConfirmed' },
      { ...nothing, removalResult: 'absent', expiredWait: 'idleConfirmed' },
    ],
    [
      'busy check: requested again',
      { removalResult: 'busy' },
      { kind: 'expiredWait', wait: 'busyCheck' },
      { ...nothing, expiredWait: 'busyCheck' },
    ],
    [
      'a change: only proofs and completed actions are kept',
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
      'the pod was read: nothing else changes',
      { removalResult: 'removed', expiredWait: 'idleConfirmed' },
      { kind: 'podRefreshed' },
      { ...nothing, removalResult: 'removed', expiredWait: 'idleConfirmed', podRefreshed: true },
    ],
    [
      'stopped: the CI server must be asked again',
      { removalResult: 'busy', stop: 'stop' },
      { kind: 'stopped', mode: 'stop' },
      { ...nothing, stopped: 'stop' },
    ],
  ])('%s', (_what, before, event, after) => {
    expect(applyEvent({ ...alive, ...before }, event)).toEqual(after);
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

  /** The events that may follow an action, according to unregister.ts. */
  function eventsAfter(
    action: UnregistrationAction,
    facts: UnregistrationFacts,
  ): UnregistrationEvent[] {
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
        const possible = answered.filter(
          ({ answer }) => answer !== 'busy' || action.onBusy === 'return',
        );
        return [
          ...possible,
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

  /** What the workflow may observe next: one more fact, and no fact is undone. */
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

  test('from the initial facts, by possible events', () => {
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
    // Breadth first, until every row was reached.
    for (const facts of next) {
      if (rows.size === ROWS.length && kinds.size === KINDS.length) break;
      const key = JSON.stringify(facts, Object.keys(facts).toSorted());
      if (known.has(key)) continue;
      known.add(key);
      const action = decideUnregistration(facts);
      rows.add(action.row);
      kinds.add(action.kind === 'wait' ? `wait for ${action.until}` : action.kind);
      for (const event of eventsAfter(action, facts))
        for (const then of later(seenOf(facts)))
          next.push({ ...then, ...applyEvent(facts, event) });
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

describe('rules for every combination of facts', () => {
  const decided = [...everyCombination()].map((facts) => ({
    facts,
    action: decideUnregistration(facts),
  }));
  /** The first few combinations that violate a rule; none if the rule holds. */
  const violations = (
    rule: (facts: UnregistrationFacts, action: UnregistrationAction) => boolean,
  ) => decided.filter(({ facts, action }) => !rule(facts, action)).slice(0, 3);

  test('all combinations are tested', () => {
    expect(decided).toHaveLength(2 ** 6 * 3 * 3 * 6 * 3 * 3 * 6);
  });

  test('there is an action with a reason for operators', () => {
    expect(
      violations((_, action) => ROWS.includes(action.row) && action.reason.length > 5),
    ).toEqual([]);
  });

  test('a pod that was observed busy is never stopped or torn down unless a stop was accepted', () => {
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

  test('a running pod is torn down only if it was observed idle, or if its container never started', () => {
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

  test('a pod whose container never started is deleted without a request only if it still has not started', () => {
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

  test('a running pod without a stop request is deleted only if its registration is gone, or will never exist', () => {
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

  test('busy (422) never ends a running pod without a stop request', () => {
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

  test('with a stop no action waits for the CI server or for the job, only for the requested termination', () => {
    expect(
      violations((f, action) => {
        if (f.ended || f.stop === undefined) return true;
        if (action.kind === 'handOff') return false;
        if (action.kind === 'remove') return f.stop !== 'force' && f.expiredWait !== 'stopResponse';
        return action.kind !== 'wait' || (f.stopped !== undefined && action.until === 'terminated');
      }),
    ).toEqual([]);
  });

  test('each stop mode is requested once, and once more if the pod exceeds its grace period', () => {
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

  test('an ended runner waits only for the CI server', () => {
    expect(
      violations(
        (f, action) =>
          !f.ended ||
          ['tearDown', 'remove', 'handOff'].includes(action.kind) ||
          action.row === '4d',
      ),
    ).toEqual([]);
  });

  test('a registration is handed off only for an ended runner that the CI server reports as busy, or not at all', () => {
    expect(
      violations(
        (f, action) =>
          action.kind !== 'handOff' ||
          (f.ended && (f.removalResult === 'busy' || f.removalResult === 'failed')),
      ),
    ).toEqual([]);
  });

  test('without proof a runner is torn down only after a response, or after exit 0 of an ephemeral runner', () => {
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
