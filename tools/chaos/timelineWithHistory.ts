import { RUNNER_WORKFLOW } from '../../core/contract/index.ts';
import { timelineOf, type Entry } from './timeline.ts';
import type { ChaosWorld } from './world.ts';

/** All of one life, the events of its workflow's histories included. */
export async function timelineWithHistory({ client, observer, startedAtMs }: ChaosWorld, life: string): Promise<string[]> {
  const events: Entry[] = [];
  for await (const { workflowId, runId, type } of client.workflow.list({ query: `WorkflowId = '${life}'` })) {
    if (type !== RUNNER_WORKFLOW) continue;
    const { events: history } = await client.workflow.getHandle(workflowId, runId).fetchHistory();
    for (const { eventId, eventType, eventTime, ...attributes } of history ?? []) {
      const at = Number(eventTime?.seconds ?? 0) * 1_000 + Math.floor((eventTime?.nanos ?? 0) / 1_000_000) - startedAtMs;
      events.push({ at, life, kind: 'event', what: `${String(eventId)} ${String(eventType)} ${detailsOf(attributes)}` });
    }
  }
  return timelineOf([...observer.entries, ...events], life);
}

/** What tells one event from another of its type: names and the first words of a failure. */
function detailsOf(attributes: object): string {
  const [details] = Object.values(attributes).filter((value): value is Record<string, unknown> => typeof value === 'object' && value !== null && !Array.isArray(value) && Object.keys(value).length > 2); // prettier-ignore
  const text = JSON.stringify(details ?? {}, (key, value: unknown) => (key === 'payloads' || key === 'header' || key === 'stackTrace' ? undefined : value));
  return text.slice(0, 300);
}
