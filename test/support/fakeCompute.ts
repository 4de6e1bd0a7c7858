import { randomUUID } from 'node:crypto';
import { podName } from '../../activities/compute/naming.ts';
import { ComputeError } from '../../activities/ports/computeError.ts';
import type { Compute, DeletionOptions, PodListener } from '../../activities/ports/compute.ts';
import type { Registration } from '../../activities/ports/ciServer.ts';
import type { VolumeClaim } from '../../core/contract/index.ts';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import type { ServedLocation } from '../../core/domain/location.ts';
import type {
  ClaimWriter,
  OwnedPodRef,
  PodRequest,
  PodView,
  RunnerIdentity,
  StopReason,
} from '../../core/domain/pod.ts';

/**
 * A compute in memory whose pods a test controls. It replaces a cluster only in tests of the
 * workflow's own logic. Every real compute has tests of its own.
 */
export class FakeCompute implements Compute {
  readonly kind = 'process';
  readonly pods = new Map<string, PodView>();
  readonly secrets = new Map<string, Registration>();
  readonly created: PodRequest[] = [];
  readonly deletions: {
    name: string;
    gracePeriodSeconds: number | undefined;
    underJob: boolean;
    reason: string | undefined;
    stopReason: StopReason | undefined;
  }[] = [];
  /** Pods with a running job, which must not be deleted without permission. */
  readonly jobs = new Set<string>();
  /** Whether new pods report online and busy by themselves, as under the supervisor. */
  probes = true;
  /** Fields of new pods. */
  born: Partial<PodView> = {};
  /** Whether the watcher gets no events, so that only the re-sync of waits remains. */
  muted = false;
  /**
   * What a pod does when it is deleted: exits at once (with 143), or runs until the test ends it.
   */
  onDelete: 'exit' | 'linger' = 'exit';
  /**
   * Whether a pod whose container has ended still exists for a moment after its deletion, as with a
   * kubelet. With `linger`, it exists until the test removes it.
   */
  slowToGo = false;
  /** Thrown by the next calls of a method. */
  readonly failures: { method: keyof Compute; error: Error }[] = [];
  /** Thrown by every call of a method, until it is taken out. */
  readonly refusals = new Map<keyof Compute, () => Error>();
  readonly #listeners = new Set<PodListener>();

  /** The quota that admits no further pod. */
  quota: string | undefined;
  stepStorage?: NonNullable<Compute['stepStorage']>;

  /** Faults that {@link validate} returns for every request. */
  readonly unsound: string[] = [];
  readonly deletedClaims: string[] = [];
  /** Pods that may still write, by claim. */
  readonly writers = new Map<string, ClaimWriter>();
  /** States of the node in the next reads; `ready` afterwards. */
  readonly nodeStates: ('ready' | 'deleted' | 'fenced' | 'unreachable')[] = [];
  /** Logs by pod. */
  readonly logs = new Map<string, string>();

  validate(): string[] {
    return this.unsound;
  }

  async deleteClaims(_identity: RunnerIdentity, claims: readonly VolumeClaim[]): Promise<void> {
    this.#failIfTold('deleteClaims');
    this.deletedClaims.push(
      ...claims.filter(({ claim }) => claim === undefined).map(({ name }) => name),
    );
  }

  async fenceClaims(
    _identity: RunnerIdentity,
    claims: readonly VolumeClaim[],
    writer: ClaimWriter,
  ): Promise<void> {
    for (const { claim, name } of claims) this.writers.set(claim ?? name, writer);
  }

  async claimWriters(
    _identity: RunnerIdentity,
    claims: readonly VolumeClaim[],
  ): Promise<ClaimWriter[]> {
    return claims.flatMap(({ claim, name }) => this.writers.get(claim ?? name) ?? []);
  }

  async releaseClaims(_identity: RunnerIdentity, claims: readonly VolumeClaim[]): Promise<void> {
    for (const { claim, name } of claims) this.writers.delete(claim ?? name);
  }

  async nodeState(): Promise<'ready' | 'deleted' | 'fenced' | 'unreachable'> {
    return this.nodeStates.shift() ?? 'ready';
  }

  async tailLog({ name }: { name: string }): Promise<string | undefined> {
    return this.logs.get(name);
  }

  async streamLog({ name }: { name: string }): Promise<AsyncIterable<Uint8Array> | undefined> {
    const log = this.logs.get(name);
    if (log === undefined) return undefined;
    return (async function* () {
      yield Buffer.from(log);
    })();
  }

  async location(): Promise<ServedLocation> {
    return { compute: 'process', cluster: 'memory', installation: 'test' };
  }

  podName(identity: RunnerIdentity): string {
    return podName(identity);
  }

  async readRegistrationSecret(identity: RunnerIdentity): Promise<Registration | undefined> {
    return this.secrets.get(podName(identity));
  }

  async storeRegistrationSecret(
    identity: RunnerIdentity,
    registration: Registration,
  ): Promise<Registration> {
    this.#failIfTold('storeRegistrationSecret');
    const stored = this.secrets.get(podName(identity)) ?? registration;
    this.secrets.set(podName(identity), stored);
    return stored;
  }

  async createPod(request: PodRequest): Promise<PodView> {
    this.#failIfTold('createPod');
    const name = podName(request.identity);
    const existing = this.pods.get(name);
    if (existing !== undefined) return existing;
    this.created.push(request);
    const { workflowId } = request.identity;
    const reported = this.probes
      ? {
          online: false,
          busy: false,
          ...(request.supervision?.ephemeral === true ? {} : { reusable: true as const }),
          ...omitUndefined({ notifyBusy: request.notifyBusy }),
        }
      : {};
    const pod: PodView = {
      name,
      uid: randomUUID(),
      workflowId,
      scheduled: false,
      createdAt: new Date().toISOString(),
      ended: false,
      deleted: false,
      terminating: false,
      ...reported,
      ...this.born,
    };
    this.#set(pod);
    return pod;
  }

  async getPod({
    name,
    uid,
    workflowId,
  }: Pick<OwnedPodRef, 'name'> & Partial<OwnedPodRef>): Promise<PodView | undefined> {
    const pod = this.pods.get(name);
    if (pod === undefined || (uid !== undefined && pod.uid !== uid)) return undefined;
    if (workflowId === undefined || pod.workflowId === workflowId) return pod;
    if (uid === undefined) return undefined;
    throw new ComputeError('foreign', `${name} is not a pod of ${workflowId}`);
  }

  async deletePod(
    pod: OwnedPodRef,
    options: DeletionOptions = {},
  ): Promise<'deleted' | 'terminating' | PodView> {
    this.#failIfTold('deletePod');
    const current = await this.getPod(pod);
    if (current === undefined) return 'deleted';
    if (options.unlessStarted === true && current.startedAt !== undefined && !current.terminating)
      return current;
    if (
      options.unlessBusy === true &&
      !current.terminating &&
      (current.ended || current.busy === true)
    )
      return current;
    this.deletions.push({
      name: pod.name,
      gracePeriodSeconds: options.gracePeriodSeconds,
      underJob: this.jobs.has(pod.name),
      reason: options.reason,
      stopReason: options.stopReason,
    });
    if (options.gracePeriodSeconds === 1 && !current.ended) this.end(pod.name, 137);
    if (
      options.gracePeriodSeconds === 0 ||
      options.gracePeriodSeconds === 1 ||
      (current.ended && !this.slowToGo)
    ) {
      this.vanish(pod.name);
      return 'deleted';
    }
    if (current.ended) {
      this.change(pod.name, { terminating: true });
      if (this.onDelete === 'exit') setImmediate(() => this.vanish(pod.name));
      return 'terminating';
    }
    this.change(pod.name, {
      terminating: true,
      terminationDeadline: new Date(Date.now() + 30_000).toISOString(),
    });
    if (this.onDelete === 'exit') {
      setImmediate(() => {
        this.end(pod.name, 143);
        this.vanish(pod.name);
      });
    }
    return 'terminating';
  }

  async deleteRegistrationSecret(identity: RunnerIdentity): Promise<void> {
    this.#failIfTold('deleteRegistrationSecret');
    this.secrets.delete(podName(identity));
  }

  async list(): Promise<PodView[]> {
    return [...this.pods.values()];
  }

  async exhaustedQuota(): Promise<string | undefined> {
    return this.quota;
  }

  async watch(listener: PodListener): Promise<{ stop(): Promise<void>; synced(): boolean }> {
    this.#listeners.add(listener);
    for (const pod of this.pods.values()) listener.changed(pod, undefined);
    listener.relisted(this.pods);
    return {
      stop: async () => void this.#listeners.delete(listener),
      synced: () => true,
    };
  }

  // ------------------------------------------------------------------------ what the test controls

  start(name: string): void {
    const reported = this.probes ? { online: true, busy: false } : {};
    this.change(name, {
      scheduled: true,
      node: 'node-1',
      startedAt: new Date().toISOString(),
      ...reported,
    });
  }

  startJob(name: string): void {
    this.jobs.add(name);
    if (this.probes) this.change(name, { busy: true });
  }

  endJob(name: string): void {
    this.jobs.delete(name);
    // An ephemeral runner is never ready again.
    if (this.probes && this.pods.get(name)?.reusable === true) this.change(name, { busy: false });
  }

  end(name: string, code: number, more: Partial<PodView> & { oomKilled?: boolean } = {}): void {
    const { oomKilled = false, ...fields } = more;
    this.jobs.delete(name);
    this.change(name, { ended: true, exit: { code, oomKilled }, ...fields });
  }

  vanish(name: string): void {
    const last = this.pods.get(name);
    if (last === undefined) return;
    this.jobs.delete(name);
    this.pods.delete(name);
    this.#emit({ ...last, ended: true, deleted: true }, last);
  }

  change(name: string, fields: Partial<PodView>): void {
    const last = this.pods.get(name);
    if (last !== undefined) this.#set({ ...last, ...fields });
  }

  #set(pod: PodView): void {
    const last = this.pods.get(pod.name);
    this.pods.set(pod.name, pod);
    this.#emit(pod, last);
  }

  #emit(pod: PodView, last: PodView | undefined): void {
    if (!this.muted) for (const listener of this.#listeners) listener.changed(pod, last);
  }

  #failIfTold(method: keyof Compute): void {
    const refusal = this.refusals.get(method);
    if (refusal !== undefined) throw refusal();
    const index = this.failures.findIndex((failure) => failure.method === method);
    if (index < 0) return;
    const [failure] = this.failures.splice(index, 1);
    throw failure?.error ?? new Error('no failure');
  }
}
