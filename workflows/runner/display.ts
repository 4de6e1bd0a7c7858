/** Display of a runner: search attributes for lists and filters, and details for the UI. */
import { setCurrentDetails, upsertSearchAttributes } from '@temporalio/workflow';
import {
  SEARCH_ATTRIBUTES,
  type RunnerCause,
  type RunnerOutcome,
  type RunnerPhase,
  type RunnerStatus,
} from '../../core/contract/index.ts';
import type { AdmittedRunner } from '../../core/activities/index.ts';
import { formatLocation } from '../../core/domain/location.ts';
import { escapeMarkdown } from '../../core/domain/displayText.ts';
import type { RunnerSpec } from '../../core/input/runner.ts';

/** Verdict of the runner, once there is one. */
export interface DisplayedVerdict {
  readonly outcome?: RunnerOutcome;
  readonly cause?: RunnerCause;
  readonly message?: string;
  readonly rerunWorkflowId?: string;
}

/**
 * Publisher of a runner's search attributes and details. It remembers the last values, so that only
 * changes are sent.
 */
export class RunnerDisplay {
  #name: string | undefined;
  #phase: RunnerPhase | undefined;
  #verdict: DisplayedVerdict = {};

  /** Phase that lists show now. It may be older than the last recorded phase. */
  get publishedPhase(): RunnerPhase | undefined {
    return this.#phase;
  }

  /**
   * Publishes phase, name and verdict in search attributes. The first call also publishes location,
   * scope and set.
   */
  updateSearchAttributes(
    { location, scope, set }: AdmittedRunner,
    phase: RunnerPhase,
    name: string,
    verdict: DisplayedVerdict = {},
  ): void {
    const { outcome, cause } = verdict;
    const first = this.#phase === undefined;
    upsertSearchAttributes([
      { key: SEARCH_ATTRIBUTES.phase, value: phase },
      ...(first ? [{ key: SEARCH_ATTRIBUTES.place, value: formatLocation(location) }] : []),
      ...(first && scope !== undefined
        ? [{ key: SEARCH_ATTRIBUTES.scope, value: scope.name }]
        : []),
      ...(first && set !== undefined ? [{ key: SEARCH_ATTRIBUTES.set, value: set }] : []),
      ...(name === this.#name ? [] : [{ key: SEARCH_ATTRIBUTES.name, value: name }]),
      ...(outcome === undefined ? [] : [{ key: SEARCH_ATTRIBUTES.outcome, value: outcome }]),
      ...(cause === undefined ? [] : [{ key: SEARCH_ATTRIBUTES.cause, value: cause }]),
    ]);
    this.#name = name;
    this.#phase = phase;
    this.#verdict = verdict;
  }

  /** Publishes the details for the UI. */
  updateDetails(spec: RunnerSpec, status: RunnerStatus): void {
    setCurrentDetails(renderDetails(spec, status, this.#verdict));
  }
}

/**
 * Renders the details as Markdown. The details of an ended workflow begin with its verdict, because
 * lists show all of them as Completed.
 */
export function renderDetails(
  { scope, warnings }: RunnerSpec,
  s: RunnerStatus,
  { outcome, cause, message, rerunWorkflowId }: DisplayedVerdict = {},
): string {
  const row = (name: string, value: string | undefined): string[] =>
    value === undefined || value === '' ? [] : [`| ${name} | ${escapeMarkdown(value)} |`];
  const rows = [
    ...row('Outcome', outcome && [outcome, cause].filter(Boolean).join('/')),
    ...row('Message', message),
    ...row('Name', s.runnerName),
    ...row('Scope', scope?.name),
    ...row('Pod', s.pod),
    ...row('Node', s.node),
    ...row('Job', s.job),
    ...row('Waits for', s.waitingFor),
    ...row('Until', s.waitingUntil),
    ...row('Cancel', s.cancel && `${s.cancel.mode} ${s.cancel.reason}`),
    ...warnings.flatMap((warning) => row('Warning', warning)),
    ...s.replacements.flatMap((lost) => row('Replaced', `${lost.runnerName} (${lost.cause})`)),
    ...row('Job rerun', rerunWorkflowId),
  ];
  return [`| Runner | ${s.phase} |`, '|---|---|', ...rows].join('\n');
}
