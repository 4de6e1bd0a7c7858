import { readFileSync } from 'node:fs';
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { parse } from 'yaml';
import type { RunnerSetStatus } from '../../../core/contract/index.ts';
import { isObject } from '../../../core/domain/isObject.ts';
import { MAX_RUNNERS, setSchema } from '../../../core/input/runnerSetSchema.ts';
import {
  FAILED_RETRY_MS,
  nextStep,
  type ReconcileInput,
  type SetFacts,
} from '../../../worker/controller/nextStep.ts';
import {
  RUNNER_SETS,
  statusOf,
  statusPatch,
  type RunnerSetResource,
  type RunnerSetResourceStatus,
} from '../../../worker/controller/runnerSetResource.ts';

const running = { state: 'running', owner: 'this', deleting: false, differs: false } as const;
const ended = {
  state: 'ended',
  owned: true,
  message: 'the set failed: no credential',
  failed: true,
  ageMs: 1_000,
} as const;
const fresh = { name: 'linux', observed: false };
const observed = { name: 'linux', observed: true };

describe('the next step', () => {
  test.each<[string, ReconcileInput['resource'], SetFacts, string, string]>([
    ['no resource, no set', undefined, { state: 'absent' }, 'none', 'Deleted'],
    [
      'no resource: its set is drained',
      undefined,
      { ...running, owner: 'earlier' },
      'end',
      'Deleted',
    ],
    [
      'no resource: its set is drained once',
      undefined,
      { ...running, owner: 'earlier', deleting: true },
      'none',
      'Deleted',
    ],
    [
      'no resource: a set of another owner is unchanged',
      undefined,
      { ...running, owner: 'other' },
      'none',
      'Deleted',
    ],
    [
      'no resource: a set that has ended is unchanged',
      undefined,
      { ...ended, owned: false },
      'none',
      'Deleted',
    ],
    ['a new resource', fresh, { state: 'absent' }, 'start', 'Starting'],
    [
      'a new resource, and an old ended set',
      fresh,
      { ...ended, owned: false },
      'start',
      'Starting',
    ],
    [
      'an invalid resource',
      { ...fresh, invalid: 'spec.max: is missing' },
      { state: 'absent' },
      'none',
      'InvalidSpec',
    ],
    [
      'an invalid change: the set is unchanged',
      { ...fresh, invalid: 'spec.max: is missing' },
      { ...running, differs: true },
      'none',
      'InvalidSpec',
    ],
    ['the set matches the spec', observed, running, 'none', 'Applied'],
    ['the spec differs', fresh, { ...running, differs: true }, 'apply', 'Progressing'],
    [
      'the set was changed by a command',
      observed,
      { ...running, differs: true },
      'apply',
      'Progressing',
    ],
    ['no worker responds', observed, { ...running, differs: undefined }, 'none', 'NoWorker'],
    [
      'its workflow is paused in Temporal',
      observed,
      { ...running, paused: 'in Temporal', differs: undefined },
      'none',
      'Paused',
    ],
    ['the set is ending', observed, { ...running, deleting: true }, 'none', 'Ending'],
    ['a set that a user has started', fresh, { ...running, owner: 'other' }, 'none', 'NameTaken'],
    [
      'a set on another task queue',
      fresh,
      { ...running, owner: 'other', otherTaskQueue: 'more' },
      'none',
      'NameTaken',
    ],
    [
      'an invalid resource whose name is in use',
      { ...fresh, invalid: 'spec.max: is missing' },
      { ...running, owner: 'other' },
      'none',
      'NameTaken',
    ],
    [
      'deleted and created again: the earlier set is drained first',
      fresh,
      { ...running, owner: 'earlier' },
      'end',
      'PreviousSetDraining',
    ],
    [
      'deleted and created again: waits until the earlier set has ended',
      fresh,
      { ...running, owner: 'earlier', deleting: true },
      'none',
      'PreviousSetDraining',
    ],
    ['the set has failed', observed, ended, 'none', 'Failed'],
    [
      'the set has failed a while ago',
      observed,
      { ...ended, ageMs: FAILED_RETRY_MS },
      'start',
      'Starting',
    ],
    ['the set has failed, and the spec has changed', fresh, ended, 'start', 'Starting'],
    ['a user ended the set', observed, { ...ended, failed: false }, 'none', 'Ended'],
    [
      'a user ended the set, long ago',
      observed,
      { ...ended, failed: false, ageMs: 10 * FAILED_RETRY_MS },
      'none',
      'Ended',
    ],
    [
      'a user ended the set, and its retention is over',
      { ...observed, reportedEnded: true },
      { state: 'absent' },
      'none',
      'Ended',
    ],
    [
      'a user ended the set, and the spec has changed since its retention',
      { ...fresh, reportedEnded: true },
      { state: 'absent' },
      'start',
      'Starting',
    ],
    [
      'a user ended the set, and the spec has changed',
      fresh,
      { ...ended, failed: false },
      'start',
      'Starting',
    ],
  ])('%s', (_what, resource, set, step, reason) => {
    const next = nextStep({ resource, set });
    expect({ action: next.action, reason: next.status.reason, ready: next.status.ready }).toEqual({
      action: step,
      reason,
      ready: reason === 'Applied',
    });
    expect(next.status.message).not.toBe('');
  });
});

const status = (state: Partial<RunnerSetStatus> = {}): RunnerSetStatus => ({
  name: 'linux', templateHash: 'g', desired: 3, min: 3, max: 3, replicas: 3, labels: [], scope: 'acme', holds: [],
  runners: [], runnerCounts: { starting: 1, idle: 1, busy: 2, draining: 1 },
  jobs: { queued: 1, running: 2, startedTotal: 9, completedTotal: 7 },
  ...state,
}); // prettier-ignore
const resource = (more: Partial<RunnerSetResource> = {}): RunnerSetResource => ({
  metadata: { name: 'linux', uid: 'u', generation: 4 },
  spec: { replicas: 3, template: {} },
  ...more,
});
const FAILURE = { runner: 'runner-linux-a', message: 'rejected', at: '2026-01-01T00:00:00.000Z' };
const applied = { ready: true, reason: 'Applied', message: 'so' };

describe('the status', () => {
  test('has the number of runners by state, and the label selector of their pods', () => {
    expect(statusOf(resource(), applied, status({ blockedReason: 'paused: sale', waitingFor: 'x', lastFailure: FAILURE }), Date.UTC(2026, 0, 1, 12, 0, 0, 700))).toEqual({
      observedGeneration: 4, desired: 3, replicas: 5, idle: 1, busy: 2, starting: 1, draining: 1, jobs: { queued: 1, running: 2 }, blockedReason: 'paused: sale', waitingFor: 'x', lastFailure: FAILURE,
      selector: 'holdfast.dev/set=linux', workflowId: 'set-linux',
      conditions: [{ type: 'Ready', status: 'True', reason: 'Applied', message: 'so', observedGeneration: 4, lastTransitionTime: '2026-01-01T12:00:00Z' }],
    }); // prettier-ignore
  });

  test('keeps the numbers of a set that does not respond, and the transition time', () => {
    const before = statusOf(resource(), applied, status(), 0);
    const after = statusOf(
      resource({ status: before }),
      { ...applied, reason: 'Other' },
      undefined,
      5_000,
    );
    expect(after).toMatchObject({
      replicas: 5,
      conditions: [{ status: 'True', reason: 'Other', lastTransitionTime: '1970-01-01T00:00:00Z' }],
    });
    expect(
      statusOf(resource({ status: before }), { ...applied, ready: false }, undefined, 5_000),
    ).toMatchObject({
      conditions: [{ status: 'False', lastTransitionTime: '1970-01-01T00:00:05Z' }],
    });
  });

  test('ignores a change that arrives while the set ends, which is for the next set', () => {
    const before = { ...statusOf(resource(), applied, status(), 0), observedGeneration: 3 };
    expect(
      statusOf(
        resource({ status: before }),
        { ready: false, reason: 'Ending', message: 'x' },
        undefined,
        0,
      ).observedGeneration,
    ).toBe(3);
    expect(
      statusOf(
        resource({ status: before }),
        { ready: false, reason: 'Ended', message: 'x' },
        undefined,
        0,
      ).observedGeneration,
    ).toBe(4);
  });

  test('is written only if it differs, and removes obsolete fields', () => {
    const before = statusOf(resource(), applied, status({ blockedReason: 'x' }), 0);
    const reordered = JSON.parse(
      JSON.stringify({
        ...before,
        conditions: before.conditions?.map((each) =>
          Object.fromEntries(Object.entries(each).toReversed()),
        ),
      }),
    ) as typeof before;
    expect(statusPatch(reordered, before)).toBeUndefined();
    expect(statusPatch(undefined, before)).toEqual(before);
    const now = statusOf(resource({ status: before }), applied, status(), 0);
    expect(statusPatch(before, now)).toEqual({ ...now, blockedReason: null });
    expect(statusPatch(now, { ...now, idle: 2 })).toMatchObject({ idle: 2 });
  });
});

/** Applies a JSON merge patch: https://www.rfc-editor.org/rfc/rfc7386#section-2 */
function applyMergePatch(target: unknown, patch: unknown): unknown {
  if (!isObject(patch)) return patch;
  const result = new Map(Object.entries(isObject(target) ? target : {}));
  for (const [key, value] of Object.entries(patch))
    if (value === null) result.delete(key);
    else result.set(key, applyMergePatch(result.get(key), value));
  return Object.fromEntries(result);
}

test('the patch of a status changes any status to any other', () => {
  const text = fc.constantFrom('a', 'b');
  const count = fc.nat(2);
  const failure = fc.record(
    { runner: text, message: text, at: text, cause: fc.constantFrom('evicted', 'credentials') },
    { requiredKeys: ['runner', 'message', 'at'] },
  );
  const condition = fc.record(
    { type: text, status: fc.constant('True'), reason: text, message: text, lastTransitionTime: text, observedGeneration: count },
    { requiredKeys: ['type', 'status', 'reason', 'message', 'lastTransitionTime'] },
  ); // prettier-ignore
  const anyStatus = fc.record(
    { observedGeneration: count, desired: count, jobs: fc.record({ queued: count, running: count }), blockedReason: text, lastFailure: failure, conditions: fc.array(condition, { maxLength: 2 }) },
    { requiredKeys: [] },
  ) as fc.Arbitrary<RunnerSetResourceStatus>; // prettier-ignore
  fc.assert(
    fc.property(fc.option(anyStatus, { nil: undefined }), anyStatus, (before, after) => {
      const patch = statusPatch(before, after);
      const patched = patch === undefined ? before : applyMergePatch(before, patch);
      expect(patched ?? {}).toEqual(after);
      expect(statusPatch(patched as RunnerSetResourceStatus, after)).toBeUndefined();
    }),
  );
});

interface Schema {
  readonly properties: Readonly<Record<string, Schema>>;
  readonly maximum?: number;
  readonly items?: Schema;
}

test('the CRD has the fields of a set, and its limits', () => {
  const text = readFileSync(
    new URL('../../../deploy/chart/crds/runnersets.holdfast.dev.yaml', import.meta.url),
    'utf8',
  );
  const { metadata, spec } = parse(text) as {
    metadata: { name: string };
    spec: {
      group: string;
      names: { plural: string; listKind: string };
      versions: { name: string; schema: { openAPIV3Schema: Schema } }[];
    };
  };
  const [version] = spec.versions;
  expect({
    group: spec.group,
    version: version?.name,
    plural: spec.names.plural,
    listKind: spec.names.listKind,
  }).toEqual(RUNNER_SETS);
  expect(metadata.name).toBe(`${RUNNER_SETS.plural}.${RUNNER_SETS.group}`);
  const { spec: fields, status: told } = version!.schema.openAPIV3Schema.properties;
  expect(Object.keys(fields!.properties).toSorted()).toEqual(
    Object.keys(setSchema.shape)
      .filter((name) => name !== 'name')
      .toSorted(),
  );
  const schedule = setSchema.shape.schedules.unwrap().element;
  expect(Object.keys(fields!.properties['schedules']!.items!.properties).toSorted()).toEqual(
    Object.keys(schedule.shape).toSorted(),
  );
  for (const name of ['replicas', 'minIdle', 'max', 'replaceAhead'])
    expect(fields!.properties[name]?.maximum).toBe(MAX_RUNNERS);
  // The API server drops fields that are not in the CRD.
  const whole = statusOf(
    resource(),
    applied,
    status({ blockedReason: 'x', waitingFor: 'y', lastFailure: FAILURE }),
    0,
  );
  expect(Object.keys(told!.properties).toSorted()).toEqual(Object.keys(whole).toSorted());
});
