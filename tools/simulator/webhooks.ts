import { createHmac, randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Changes } from './changes.ts';
import type { JobAction } from './dispatch.ts';
import type { Faults } from './faults.ts';
import { idOf, jobJson, repositoryJson, userJson } from './githubJson.ts';
import type { WebhookTarget } from './options.ts';
import type { SimulatedJob, WebhookDelivery } from './types.ts';

/** Number of stored deliveries. GitHub stores those of 3 days. */
const KEPT = 5000;

interface Pending {
  delivery: WebhookDelivery;
  body: string;
}

/**
 * Sends signed `workflow_job` events and stores every delivery. As GitHub, it does not redeliver by
 * itself.
 */
export class Webhooks {
  target: WebhookTarget | undefined;
  readonly #timeoutMs: number;
  readonly #faults: Faults;
  readonly #changes: Changes;
  readonly #installationOf: (login: string) => number | undefined;
  #deliveries: WebhookDelivery[] = [];
  #nextId = 1;
  /**
   * The latest delivery of each job. Deliveries of one job are sent in order, those of different
   * jobs concurrently.
   */
  #lanes = new Map<number, Promise<void>>();
  #limited: Pending[] = [];
  #stopped = new AbortController();

  /** @param installationOf the App's installation on an account, which an App's events name */
  constructor(
    target: WebhookTarget | undefined,
    timeoutMs: number,
    faults: Faults,
    changes: Changes,
    installationOf: (login: string) => number | undefined,
  ) {
    this.target = target;
    this.#timeoutMs = timeoutMs;
    this.#faults = faults;
    this.#changes = changes;
    this.#installationOf = installationOf;
  }

  /** All deliveries, the oldest first. */
  deliveries(): WebhookDelivery[] {
    return [...this.#deliveries];
  }

  /** Sends an event about a job. Returns before the delivery. */
  announce(action: JobAction, job: SimulatedJob): void {
    if (!this.target) return;
    const payload = workflowJobPayload(
      action,
      job,
      this.#installationOf(job.repo.split('/')[0] ?? ''),
    );
    const pending: Pending = {
      delivery: this.#record(action, job.repo, payload, randomUUID(), false),
      body: JSON.stringify(payload),
    };
    const endpoint = { endpoint: `workflow_job.${action}` };
    if (this.#faults.first(['webhook_lost'], endpoint)) {
      pending.delivery.lost = true;
      return;
    }
    const shuffled = this.#faults.first(['webhook_shuffled'], endpoint);
    if (shuffled) {
      this.#limited.push(pending);
      if (this.#limited.length >= (shuffled.of ?? 3)) this.releaseDelayed();
      return;
    }
    const delayMs = this.#faults
      .take(['webhook_delayed'], endpoint)
      .reduce((sum, fault) => sum + fault.ms, 0);
    const copies = this.#faults.first(['webhook_doubled'], endpoint) ? 2 : 1;
    if (delayMs > 0) void this.#sendLater(pending, delayMs, copies);
    else this.#enqueue(job.id, pending, copies);
  }

  /** Sends the events that were held back for a random order. */
  releaseDelayed(): void {
    const held = this.#limited.splice(0);
    const order = held
      .map((pending) => ({ pending, rank: this.#faults.random() }))
      .toSorted((a, b) => a.rank - b.rank);
    void order.reduce(
      (before, { pending }) => before.then(() => this.#send(pending)),
      Promise.resolve(),
    );
  }

  /** Sends an old delivery again, under the same guid. @returns undefined for an unknown id */
  redeliver(id: number): WebhookDelivery | undefined {
    const original = this.#deliveries.find((delivery) => delivery.id === id);
    if (!original) return undefined;
    const delivery = this.#record(
      original.action,
      original.repo,
      original.payload,
      original.guid,
      true,
    );
    this.#enqueue(-delivery.id, { delivery, body: JSON.stringify(original.payload) }, 1);
    return delivery;
  }

  stop(): void {
    this.#stopped.abort();
  }

  #record(
    action: string,
    repo: string,
    payload: unknown,
    guid: string,
    redelivery: boolean,
  ): WebhookDelivery {
    const delivery: WebhookDelivery = {
      id: this.#nextId++,
      guid,
      delivered_at: new Date().toISOString(),
      redelivery,
      duration: 0,
      status: 'pending',
      status_code: 0,
      event: 'workflow_job',
      action,
      repository_id: idOf(repo),
      repo,
      payload,
      lost: false,
    };
    this.#deliveries.push(delivery);
    if (this.#deliveries.length > KEPT) this.#deliveries.shift();
    return delivery;
  }

  #enqueue(lane: number, pending: Pending, copies: number): void {
    let tail = this.#lanes.get(lane) ?? Promise.resolve();
    for (let copy = 0; copy < copies; copy++) tail = tail.then(() => this.#send(pending));
    this.#lanes.set(lane, tail);
    void tail.then(() => {
      if (this.#lanes.get(lane) === tail) this.#lanes.delete(lane);
    });
  }

  async #sendLater(pending: Pending, delayMs: number, copies: number): Promise<void> {
    await sleep(delayMs, undefined, { ref: false });
    for (let copy = 0; copy < copies; copy++) await this.#send(pending);
  }

  async #send({ delivery, body }: Pending): Promise<void> {
    const target = this.target;
    if (!target || this.#stopped.signal.aborted) return;
    const startedMs = Date.now();
    try {
      const response = await fetch(target.url, {
        method: 'POST',
        body,
        headers: webhookHeaders(target, delivery, body),
        signal: AbortSignal.any([AbortSignal.timeout(this.#timeoutMs), this.#stopped.signal]),
      });
      await response.arrayBuffer();
      delivery.status_code = response.status;
      delivery.status = response.ok ? 'OK' : response.statusText || 'failed';
    } catch (error) {
      delivery.status_code = 0;
      delivery.status =
        error instanceof Error && error.name === 'TimeoutError' ? 'timed out' : 'failed to connect';
    }
    delivery.delivered_at = new Date().toISOString();
    delivery.duration = (Date.now() - startedMs) / 1000;
    this.#changes.bump();
  }
}

/**
 * Returns the headers that GitHub sends:
 * https://docs.github.com/webhooks/webhook-events-and-payloads#delivery-headers
 */
function webhookHeaders(
  target: WebhookTarget,
  delivery: WebhookDelivery,
  body: string,
): Record<string, string> {
  return {
    accept: '*/*',
    'content-type': 'application/json',
    'user-agent': 'GitHub-Hookshot/simulator',
    'x-github-delivery': delivery.guid,
    'x-github-event': delivery.event,
    'x-github-hook-id': String(target.hookId ?? 1),
    'x-github-hook-installation-target-type': 'organization',
    'x-hub-signature-256': `sha256=${createHmac('sha256', target.secret).update(body).digest('hex')}`,
  };
}

function workflowJobPayload(
  action: JobAction,
  job: SimulatedJob,
  installation: number | undefined,
): Record<string, unknown> {
  const login = job.repo.split('/')[0] ?? '';
  const owner = userJson(login);
  return {
    action,
    workflow_job: jobJson(job),
    repository: repositoryJson(job.repo),
    organization: {
      login,
      id: idOf(login),
      node_id: owner['node_id'],
      url: `https://api.github.com/orgs/${login}`,
      repos_url: `https://api.github.com/orgs/${login}/repos`,
      events_url: `https://api.github.com/orgs/${login}/events`,
      hooks_url: `https://api.github.com/orgs/${login}/hooks`,
      issues_url: `https://api.github.com/orgs/${login}/issues`,
      members_url: `https://api.github.com/orgs/${login}/members{/member}`,
      public_members_url: `https://api.github.com/orgs/${login}/public_members{/member}`,
      avatar_url: owner['avatar_url'],
      description: null,
    },
    sender: userJson('octocat', 'User'),
    ...(installation === undefined
      ? {}
      : {
          installation: {
            id: installation,
            node_id: Buffer.from(`IntegrationInstallation${installation}`).toString('base64'),
          },
        }),
  };
}
