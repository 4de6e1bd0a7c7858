import { RUNNER_WORKFLOW } from '../../core/contract/index.ts';
import { timelineOf, type Entry } from './timeline.ts';
import type { ChaosEnvironment } from './world.ts';

/** Returns the timeline of one runner with the events of its workflow's histories. */
export async function timelineWithHistory(
  { client, observer, startedAtMs }: ChaosEnvironment,
  workflowId: string,
): Promise<string[]> {
  const events: Entry[] = [];
  for await (const { runId, type } of client.workflow.list({
    query: `WorkflowId = '${workflowId}'`,
  })) {
    if (type !== RUNNER_WORKFLOW) continue;
    const { events: history } = await client.workflow.getHandle(workflowId, runId).fetchHistory();
    for (const { eventId, eventTime, ...rest } of history ?? []) {
      const at =
        Number(eventTime?.seconds ?? 0) * 1_000 +
        Math.floor((eventTime?.nanos ?? 0) / 1_000_000) -
        startedAtMs;
      const what = `${String(eventId)} ${formatEvent(rest)}`;
      events.push({ at, workflowId, kind: 'event', what });
    }
  }
  return timelineOf([...observer.entries, ...events], workflowId);
}

/** Keys of an event's attributes that are shown. */
const SHOWN_KEYS = [
  'activityId',
  'activityType',
  'signalName',
  'markerName',
  'attempt',
  'scheduledEventId',
  'timerId',
  'cause',
  'name',
  'message',
  'failure',
  'identity',
];
const NAME = /^(.+)EventAttributes$/;

/** Formats the type of an event, and the attributes that distinguish it from others of the type. */
function formatEvent(event: object): string {
  const [key = '', attributes = {}] =
    Object.entries(event).find(([name, value]) => NAME.test(name) && value !== null) ?? [];
  return `${NAME.exec(key)?.[1] ?? 'event'} ${JSON.stringify(attributes, ['low', ...SHOWN_KEYS]).slice(0, 400)}`;
}
