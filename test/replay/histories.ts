import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** One folder for each released version. */
export const HISTORIES = fileURLToPath(new URL('../histories/', import.meta.url));

/** A committed history, in Temporal's own JSON. */
export interface RecordedHistory {
  /** `<version>/<scenario>.json` */
  readonly file: string;
  readonly text: string;
  readonly workflowId: string;
  readonly workflowType: string;
  readonly events: readonly RecordedEvent[];
}

export interface RecordedEvent {
  readonly eventType: string;
  readonly activityTaskScheduledEventAttributes?: { readonly activityType: { readonly name: string }; readonly taskQueue: { readonly name: string } };
  readonly workflowExecutionStartedEventAttributes?: { readonly workflowId: string; readonly workflowType: { readonly name: string } };
  readonly workflowExecutionContinuedAsNewEventAttributes?: { readonly newExecutionRunId: string };
}

/** All committed histories. */
export function readHistories(): RecordedHistory[] {
  return readdirSync(HISTORIES, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.json'))
    .toSorted()
    .map((file) => {
      const text = readFileSync(join(HISTORIES, file), 'utf8');
      const { events } = JSON.parse(text) as { events: RecordedEvent[] };
      const started = events[0]?.workflowExecutionStartedEventAttributes;
      if (started === undefined) throw new Error(`${file}: does not begin with the start of a workflow`);
      return { file, text, events, workflowId: started.workflowId, workflowType: started.workflowType.name };
    });
}

/** The folder that the version under development records into: `v<major>.<minor>`. */
export function versionFolder(): string {
  const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as { version: string };
  return `v${version.split('.').slice(0, 2).join('.')}`;
}
