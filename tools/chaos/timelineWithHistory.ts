import { RUNNER_WORKFLOW } from '../../core/contract/index.ts';
import { timelineOf, type Entry } from './timeline.ts';
import type { ChaosEnvironment } from './world.ts';

/** All of one life, the events of its workflow's histories included. */
export async function timelineWithHistory(
  { client, observer, startedAtMs }: ChaosEnvironment,
  life: string,
): Promise<string[]> {
  const events: Entry[] = [];
  for await (const { workflowId, runId, type } of client.workflow.list({
    query: `WorkflowId = '${life}'`,
  })) {
    if (type !== RUNNER_WORKFLOW) continue;
    const { events: history } = await client.workflow.getHandle(workflowId, runId).fetchHistory();
    for (const { eventId, eventTime, ...rest } of history ?? []) {
      const at =
        Number(eventTime?.seconds ?? 0) * 1_000 +
        Math.floor((eventTime?.nanos ?? 0) / 1_000_000) -
        startedAtMs;
      events.push({ at, life, kind: 'event', what: `${String(eventId)} ${whatOf(rest)}` });
    }
  }
  return timelineOf([...observer.entries, ...events], life);
}

/** Keys of an event's attributes that tell people something. */
const TELLING = [
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

/** Its type, and what tells it from another of that type. */
function whatOf(event: object): string {
  const [key = '', attributes = {}] =
    Object.entries(event).find(([name, value]) => NAME.test(name) && value !== null) ?? [];
  return `${NAME.exec(key)?.[1] ?? 'event'} ${JSON.stringify(attributes, ['low', ...TELLING]).slice(0, 400)}`;
}
