import { cp, mkdtemp, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { WorkflowBundle } from '@temporalio/worker';
import { bundleWorkflows } from '../../../worker/plugin/workflowBundle.ts';
import type { RecordedHistory } from '../histories.ts';

/** A change of the workflows as a careless commit might make it, and the histories that it must break. */
export interface Change {
  readonly what: string;
  readonly file: string;
  readonly from: string;
  readonly to: string;
  readonly breaks: (history: RecordedHistory) => boolean;
}

export const CHANGES: readonly Change[] = [
  {
    what: 'an activity has another name (a registration’s; a plain command has none)',
    file: 'runner/bringUp.ts',
    from: 'calls.provision(',
    to: '(calls as any).provisionRunner(',
    breaks: ({ events }) =>
      events.some(
        ({ activityTaskScheduledEventAttributes: activity }) =>
          activity?.activityType.name === 'provision' && activity.taskQueue.name.includes('-ci-'),
      ),
  },
  {
    what: 'search attributes are not written any more',
    file: 'runner/display.ts',
    from: 'upsertSearchAttributes([',
    to: 'void ([',
    breaks: ({ workflowType, events }) =>
      workflowType === 'runner' &&
      events.some((event) => event.eventType === 'EVENT_TYPE_UPSERT_WORKFLOW_SEARCH_ATTRIBUTES'),
  },
  {
    what: 'a timer comes first',
    file: 'runner/runner.ts',
    from: '  registerUpdateHandlers(state);',
    to: '  await CancellationScope.withTimeout(1, async () => await new Promise(() => undefined)).catch(() => undefined);\n  registerUpdateHandlers(state);',
    breaks: ({ workflowType }) => workflowType === 'runner',
  },
  {
    what: 'a registration is not removed before the life ends',
    file: 'runner/unregister.ts',
    from: 'return await removeRegistration(state, action, facts);',
    to: "return { kind: 'answered', answer: 'removed', retried: false, atMs: 1 };",
    breaks: ({ workflowType, events }) =>
      workflowType === 'runner' &&
      events.some(
        (event) =>
          event.activityTaskScheduledEventAttributes?.activityType.name === 'removeRegistration',
      ),
  },
  {
    what: 'a deadline of a job has no timer',
    file: 'job/job.ts',
    from: 'if (untilMs !== undefined && !run.timers.has(untilMs)) void startDeadlineTimer(run, untilMs);',
    to: '',
    breaks: ({ workflowType }) => workflowType === 'job',
  },
  {
    what: 'a set asks for the time before it starts runners',
    file: 'runnerSet/reconcile.ts',
    from: 'await startRunners(this.state, count, this.#now)',
    to: 'await startRunners(this.state, count, (await workerActivities("read the time").getTime()).at)',
    breaks: ({ events }) =>
      events.some(
        (event) =>
          event.activityTaskScheduledEventAttributes?.activityType.name === 'startRunners' ||
          localActivityOf(event) === 'startRunners',
      ),
  },
];

/** Name of the local activity whose result the event records, if it does. */
function localActivityOf({
  markerRecordedEventAttributes: marker,
}: RecordedHistory['events'][number]): string | undefined {
  const data = marker?.details?.['data']?.payloads?.[0]?.data;
  if (data === undefined) return undefined;
  const call = JSON.parse(Buffer.from(data, 'base64').toString()) as { activity_type?: string };
  return call.activity_type;
}

const PROJECT = dirname(dirname(dirname(dirname(fileURLToPath(import.meta.url)))));

/** The workflows' code with one change made to a copy of it. @throws Error when the text to change is not there */
export async function bundleChanged({ what, file, from, to }: Change): Promise<WorkflowBundle> {
  await mkdir(join(PROJECT, '.holdfast'), { recursive: true });
  // Inside the project, where the packages that the workflows import are found.
  const copy = await mkdtemp(join(PROJECT, '.holdfast', 'changed-'));
  try {
    for (const folder of ['core', 'workflows'])
      await cp(join(PROJECT, folder), join(copy, folder), { recursive: true });
    const path = join(copy, 'workflows', file);
    const text = await readFile(path, 'utf8');
    if (!text.includes(from))
      throw new Error(
        `workflows/${file} does not say "${from}" any more: change "${what}" in ${fileURLToPath(import.meta.url)}`,
      );
    await writeFile(path, text.replace(from, to));
    return await bundleWorkflows(join(copy, 'workflows', 'index.ts'));
  } finally {
    await rm(copy, { recursive: true, force: true });
  }
}
