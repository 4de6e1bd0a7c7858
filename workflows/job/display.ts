/** Shows a job in Temporal: search attributes for lists and filters, and details for the UI. */
import { setCurrentDetails, upsertSearchAttributes } from '@temporalio/workflow';
import { SEARCH_ATTRIBUTES, type JobStage, type JobStatus } from '../../core/contract/index.ts';
import { escapeMarkdown } from '../../core/domain/displayText.ts';
import type { JobSpec } from '../../core/input/job.ts';
import type { JobVerdict } from './plan.ts';

/** Publishes name and scope in search attributes. Called once, when the job is admitted. */
export function upsertJobAttributes({ name, scope }: JobSpec): void {
  upsertSearchAttributes([
    { key: SEARCH_ATTRIBUTES.name, value: name },
    ...(scope === undefined ? [] : [{ key: SEARCH_ATTRIBUTES.scope, value: scope.name }]),
  ]);
}

/** Publishes the current stage of the job. */
export function upsertStage(stage: JobStage): void {
  upsertSearchAttributes([{ key: SEARCH_ATTRIBUTES.phase, value: stage }]);
}

/** Sets the search attributes for the outcome and the cause of a job. */
export function upsertVerdict({ outcome, cause }: JobVerdict): void {
  upsertSearchAttributes([
    { key: SEARCH_ATTRIBUTES.outcome, value: outcome },
    ...(cause === undefined ? [] : [{ key: SEARCH_ATTRIBUTES.cause, value: cause }]),
  ]);
}

/**
 * Renders the details for the UI as Markdown: the verdict, once there is one, and a row for each
 * step.
 */
export function renderDetails(
  { scope, warnings }: JobSpec,
  { name, steps, waitingFor, waitingUntil, cancel }: JobStatus,
  verdict: JobVerdict | undefined,
): void {
  const notes = [
    ...(verdict === undefined
      ? []
      : [
          `Outcome: ${[verdict.outcome, verdict.cause].filter(Boolean).join('/')}`,
          verdict.message,
        ]),
    ...(scope === undefined ? [] : [`Scope: ${scope.name}`]),
    ...(waitingFor === undefined
      ? []
      : [`Waits for ${waitingFor}${waitingUntil === undefined ? '' : `, until ${waitingUntil}`}`]),
    ...(cancel === undefined ? [] : [`Cancel: ${cancel.mode} ${cancel.reason}`]),
    ...warnings.map((warning) => `Warning: ${warning}`),
  ];
  const rows = steps.map((step) =>
    [
      step.stage,
      step.name,
      [step.outcome ?? step.state, step.cause].filter(Boolean).join('/'),
      step.pod ?? '',
      step.message ?? '',
    ].map(escapeMarkdown),
  );
  setCurrentDetails(
    [
      `**${escapeMarkdown(name)}**`,
      '',
      '| Stage | Step | State | Pod | |',
      '|---|---|---|---|---|',
      ...rows.map((row) => `| ${row.join(' | ')} |`),
      '',
      ...notes.map((note) => `- ${escapeMarkdown(note)}`),
    ].join('\n'),
  );
}
