import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from '@jest/globals';
import type { LabState } from '../../../tools/lab/lab.ts';
import { ClusterWorld } from '../../support/clusterWorld.ts';
import { startKubernetesProxy } from './kubernetesProxy.ts';
import { Meeting } from './meeting.ts';
import {
  startWithholdingProxy,
  type WithheldAnswer,
  type WithholdingProxy,
} from './withholdingProxy.ts';

/**
 * A world whose worker reaches the CI server and the API server through proxies that can withhold answers. Its lives meet twice:
 * when each is just before its side effect, and when each side effect has happened and the worker was not told. Then the worker is
 * killed (SIGKILL), and another one carries on.
 */
export class CrashWorld {
  readonly world: ClusterWorld;
  readonly gitHub: WithholdingProxy;
  readonly kubernetes: WithholdingProxy;
  readonly #folder: string;
  readonly #ready: Meeting;
  readonly #crash: Meeting;

  private constructor(
    parts: Pick<CrashWorld, 'world' | 'gitHub' | 'kubernetes'>,
    folder: string,
    lives: number,
  ) {
    this.world = parts.world;
    this.gitHub = parts.gitHub;
    this.kubernetes = parts.kubernetes;
    this.#folder = folder;
    this.#ready = new Meeting(lives, async () => undefined);
    this.#crash = new Meeting(lives, async () => {
      const { worker } = this.world;
      worker.kill('SIGKILL');
      expect(await worker.ended).toBe('SIGKILL');
      await this.world.startWorker();
    });
  }

  /** @param lives - how many take part: each must come to both meetings */
  static async open(lab: LabState, lives: number): Promise<CrashWorld> {
    const folder = await mkdtemp(join(tmpdir(), 'holdfast-crash-'));
    const { proxy: kubernetes, kubeconfig } = await startKubernetesProxy(lab, folder);
    let simulator = '';
    // Runners that register with a token are given this address too: it must be one that pods reach.
    const gitHub = await startWithholdingProxy({ url: () => simulator }, lab.hostAddress);
    const world = await ClusterWorld.open(lab, {
      withoutWorker: true,
      settings: { HOLDFAST_GITHUB_URL: gitHub.url, HOLDFAST_KUBECONFIG: kubeconfig },
    });
    simulator = world.simulator.url;
    await world.startWorker();
    return new CrashWorld({ world, gitHub, kubernetes }, folder, lives);
  }

  /** This life is just before its side effect; resolves when all are. */
  async ready(): Promise<void> {
    await this.#ready.arrive();
  }

  /**
   * Resolves when the worker was killed with all lives' answers withheld, and another one is ready.
   * @param status - what the server answered: its side effect has happened
   */
  async crashesAt(point: Promise<WithheldAnswer>, status: number): Promise<void> {
    const withheld = await this.#crash.unlessCalledOff(point);
    expect(withheld.status).toBe(status);
    // By the kill's time all clients must still wait, or it would not be the crash that keeps their answers from them.
    await this.#crash.arrive(() => {
      if (!withheld.waiting())
        throw new Error(
          `the worker gave up waiting for an answer before it was killed (${withheld.about()}): is the machine too slow for this test?`,
        );
    });
  }

  /** Somebody will not come to the meetings. */
  callOff(cause: unknown): void {
    this.#ready.callOff(cause);
    this.#crash.callOff(cause);
  }

  async close(): Promise<void> {
    await this.world.close();
    await Promise.all([this.gitHub.close(), this.kubernetes.close()]);
    await rm(this.#folder, { recursive: true });
  }
}
