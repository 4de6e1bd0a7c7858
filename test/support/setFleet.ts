import { setWorkflowId, type JobEvent, type RunnerSetInput } from '../../core/contract/index.ts';
import { JobRouter, RerouteTargets, type RoutableSet } from '../../core/domain/jobRouting.ts';
import { routingInfo } from '../../core/domain/routingInfo.ts';
import { decideSet } from '../../workflows/runnerSet/decide.ts';
import { SetState } from '../../workflows/runnerSet/state.ts';
import { setSpec } from './setModel.ts';

export const NOW = 1_000_000_000;

export function begin(name: string, more: Partial<RunnerSetInput> = {}): SetState {
  const input: RunnerSetInput = {
    name,
    minIdle: 0,
    max: 3,
    template: { organization: 'acme' },
    queueCheck: '0s',
    ...more,
  };
  const state = SetState.begin(setSpec(input), input, {}, NOW);
  state.onRunnersListed([], [], NOW);
  state.updateDemand(NOW);
  return state;
}

export const event = (
  action: JobEvent['action'],
  jobId: number,
  more: Partial<JobEvent> = {},
): JobEvent => ({
  action,
  jobId: String(jobId),
  runAttempt: 1,
  repository: 'acme/app',
  labels: ['self-hosted'],
  at: NOW,
  ...more,
});

/** Equal sets, and the messages between them. */
export class Fleet {
  now = NOW;
  readonly states: Map<string, SetState>;
  /** The sets' entries in visibility, at the last read. */
  listed: RoutableSet[] = [];

  constructor(states: readonly SetState[]) {
    this.states = new Map(states.map((state) => [setWorkflowId(state.facts.spec.name), state]));
    this.look();
  }

  look(): void {
    this.listed = [...this.states].map(([workflowId, { facts }]) => ({
      workflowId,
      routing: routingInfo(facts.spec, facts.full, facts.ending !== undefined),
    }));
  }

  /** Sends an event to its set, like the webhook. */
  deliver(one: JobEvent): void {
    const home = new JobRouter(this.listed).setFor(one, { ciServer: 'github' })?.workflowId ?? '';
    this.#at(home, [one]);
  }

  /**
   * Lets one set do what is due.
   * @param meanwhile - runs at the same time
   */
  rerouteJobs(workflowId: string, meanwhile: () => void = () => undefined): void {
    const state = this.states.get(workflowId) as SetState;
    state.updateDemand(this.now);
    if (!decideSet(state, this.now).rerouteJobs) return;
    const next = state.passing.next(state, this.now);
    const substitutes = new RerouteTargets({ workflowId, routing: next.routing }, this.listed);
    const rerouted = new Map<string, string[]>();
    for (const { key, repository, since } of next.jobs) {
      const [jobId = 0, runAttempt = 1] = key.split('/').map(Number);
      const to = substitutes.next(
        { jobId: String(jobId), runAttempt },
        { includeFull: next.draining },
      )?.workflowId;
      if (to === undefined) continue;
      this.#at(to, [
        event('queued', jobId, { runAttempt, repository, at: since, reroutedBy: workflowId }),
      ]);
      rerouted.set(to, [...(rerouted.get(to) ?? []), key]);
    }
    for (const { to, event: news } of next.forwardedEvents) this.#at(to, [news]);
    meanwhile();
    state.passing.done(
      next,
      {
        rerouted: [...rerouted].map(([to, keys]) => ({ to, keys })),
        substitutes: substitutes.size,
      },
      state,
      this.now,
    );
    state.updateDemand(this.now);
  }

  /** Advances time until all sets have done what is due. */
  settle(rounds = 40): void {
    for (let round = 0; round < rounds; round++) {
      this.now += 20_000;
      for (const workflowId of this.states.keys()) this.rerouteJobs(workflowId);
      this.look();
    }
  }

  queued(): number[] {
    return [...this.states.values()].map(({ jobs }) => jobs.queued);
  }

  #at(workflowId: string, events: JobEvent[]): void {
    const state = this.states.get(workflowId);
    state?.jobReports.onJobEvents(events, this.now);
    state?.updateDemand(this.now);
  }
}
