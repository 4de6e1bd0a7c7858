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
  readonly activityTaskScheduledEventAttributes?: {
    readonly activityType: { readonly name: string };
    readonly taskQueue: { readonly name: string };
  };
  readonly workflowExecutionStartedEventAttributes?: {
    readonly workflowId: string;
    readonly workflowType: { readonly name: string };
  };
  readonly markerRecordedEventAttributes?: {
    readonly markerName: string;
    readonly details?: Readonly<
      Record<string, { readonly payloads: readonly { readonly data: string }[] }>
    >;
  };
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
      if (started === undefined)
        throw new Error(`${file}: does not begin with the start of a workflow`);
      return {
        file,
        text,
        events,
        workflowId: started.workflowId,
        workflowType: started.workflowType.name,
      };
    });
}

/** The folder of the version under development, and of its patch releases: `v<major>.<minor>`. */
export function versionFolder(packageJson = read('package.json')): string {
  const { version } = JSON.parse(packageJson) as { version: string };
  return `v${version.split('.').slice(0, 2).join('.')}`;
}

/** Where histories are recorded. @throws Error a version of that folder is released: what they record anew would be another promise */
export function folderToRecord(
  { packageJson, changelog } = {
    packageJson: read('package.json'),
    changelog: read('CHANGELOG.md'),
  },
): string {
  const folder = versionFolder(packageJson);
  const released = changelog.split('\n').find((line) => line.startsWith(`## [${folder.slice(1)}.`));
  if (released === undefined) return folder;
  throw new Error(
    `${released.slice(3)} is released, and what it has begun has to go on: its histories stay as they are. For those of the next version, raise the minor version in package.json`,
  );
}

function read(path: string): string {
  return readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');
}
