/** Converts a HorizontalRunnerAutoscaler to the size of the set that it scales. Pure. */
import { isObject } from '../../core/domain/isObject.ts';
import type { ArcObject } from './arcObjects.ts';
import {
  convertFields,
  getPath,
  toText,
  ignored,
  unsupported,
  type FieldRow,
  type FieldRows,
} from './fieldRows.ts';
import { credentialsFromRow } from './legacyRows.ts';
import { convertOverride } from './scheduledOverride.ts';
import type { SetDraft } from './setDraft.ts';

const WEBHOOK =
  "left out: GitHub's webhook announces the jobs (event Workflow jobs, see docs/runner-sets.md), and the set looks for queued ones every queueCheck";

const minReplicasRow: FieldRow = (value, draft, field) => {
  draft.put('set', 'minIdle', value);
  if (value !== 0)
    draft.note(
      field,
      'it counted busy runners, too. minIdle counts only idle runners, so it can be lower',
      'set',
      'minIdle',
    );
};

const delayRow: FieldRow = (value, draft, field) =>
  typeof value === 'number'
    ? draft.put('set', 'scaleDownDelay', `${value}s`)
    : draft.addError(field, 'must be a number of seconds');

/** Reports triggers by events other than jobs. */
const triggersRow: FieldRow = (value, draft, field) => {
  const events = draft
    .objects(value, field)
    .flatMap((trigger) =>
      isObject(trigger['githubEvent']) ? Object.keys(trigger['githubEvent']) : [],
    );
  const others = [...new Set(events.filter((event) => event !== 'workflowJob'))];
  draft.note(field, WEBHOOK, 'set', 'max');
  if (others.length > 0)
    draft.note(
      field,
      'other events than workflowJob are left out: only jobs ask for runners here',
      'set',
      'max',
    );
};

/**
 * Returns the rows of an autoscaler. Overrides that have ended are left out.
 * @param now - current time (ms since the epoch)
 */
export const autoscalerRows = (now: number): FieldRows => ({
  scaleTargetRef: ignored,
  minReplicas: minReplicasRow,
  maxReplicas: (value, draft) => draft.put('set', 'max', value),
  scaleDownDelaySecondsAfterScaleOut: delayRow,
  metrics: unsupported(WEBHOOK, 'set', 'max'),
  scaleUpTriggers: triggersRow,
  capacityReservations: ignored,
  scheduledOverrides: (value, draft, field) => {
    const schedules = draft
      .objects(value, field)
      .flatMap((override, index) => convertOverride(override, `${field}[${index}]`, draft, now));
    if (schedules.length > 0) draft.put('set', 'schedules', schedules);
  },
  githubAPICredentialsFrom: credentialsFromRow,
});

/**
 * Converts an autoscaler.
 * @param draft - draft of the set that it scales
 * @param now - current time (ms since the epoch)
 */
export function convertAutoscaler({ name, fields }: ArcObject, draft: SetDraft, now: number): void {
  const rows = autoscalerRows(now);
  const at = `HorizontalRunnerAutoscaler ${name}: spec`;
  // Schedules have their own limits in addition to those of the set.
  const { scheduledOverrides, ...first } = fields;
  convertFields(first, rows, at, draft);
  if (draft.parts.set['max'] === undefined) draft.addError(`${at}.maxReplicas`, 'is missing');
  if (scheduledOverrides !== undefined) convertFields({ scheduledOverrides }, rows, at, draft);
}

/** Returns `kind/name` of the object that it scales. */
export function targetOf({ fields }: ArcObject): string {
  const [kind, name] = ['kind', 'name'].map((key) => getPath(fields, 'scaleTargetRef', key));
  return `${toText(kind) || 'RunnerDeployment'}/${toText(name)}`;
}
