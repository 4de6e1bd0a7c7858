/** What steps of jobs hand on in real pods without a store: in a claim of the job. */
import { randomUUID } from 'node:crypto';
import { expect } from '@jest/globals';
import type { StepInput } from '../../core/contract/index.ts';
import type { LabState } from '../../tools/lab/lab.ts';
import { ClusterJob } from '../support/clusterJob.ts';
import { ClusterWorld } from '../support/clusterWorld.ts';
import { HostPathVolumes } from '../support/hostPathVolumes.ts';
import { states } from '../support/jobRun.ts';
import { describeWithLab } from '../support/lab.ts';
import { TICK } from '../support/stoppedChildren.ts';
import { together, type Scenario } from '../support/together.ts';

/** Of this run alone: volumes belong to no namespace. */
const CLASS = `holdfast-test-${randomUUID().slice(0, 8)}`;

/** A cluster with a volume for the claim of each scenario. */
class WithClaims {
  readonly world: ClusterWorld;
  readonly #volumes: HostPathVolumes;

  private constructor(world: ClusterWorld, volumes: HostPathVolumes) {
    this.world = world;
    this.#volumes = volumes;
  }

  static async open(lab: LabState): Promise<WithClaims> {
    const world = await ClusterWorld.open(lab, {
      webhook: false,
      settings: {
        HOLDFAST_JOB_CLAIM_SIZE: '1Mi',
        HOLDFAST_JOB_CLAIM_STORAGE_CLASS: CLASS,
      },
    });
    const volumes = new HostPathVolumes(world.namespace);
    await volumes.localVolumes(CLASS, Object.keys(scenarios).length);
    return new WithClaims(world, volumes);
  }

  close = async (): Promise<void> => {
    await this.world.close();
    await this.#volumes.remove();
  };
}

const step = (name: string, commands: string, runAsUser?: number): StepInput => ({
  name,
  image: 'holdfast.test/busybox:1',
  commands,
  ...(runAsUser === undefined ? {} : { securityContext: { runAsUser, runAsNonRoot: true } }),
});
const LEAVE =
  'mkdir "$SHARED_DIR/more"; echo c-1 >"$SHARED_DIR/more/cluster"; echo one >"$ARTIFACT_DIR/1.txt";';
const FINDS =
  'test "$(cat "$SHARED_DIR/more/cluster")" = c-1; test "$(cat "$ARTIFACT_DIR/1.txt")" = one;';

const PRIVATE = '(umask 077; echo key >"$SHARED_DIR/key");';
const IS_PRIVATE = 'test "$(stat -c %a "$SHARED_DIR/key")" = 600;';

const scenarios: Record<string, Scenario<WithClaims>> = {
  'from step to step, whatever users their images have': async ({ world }) => {
    const job = await ClusterJob.start(world, 'users', {
      pre: [step('rent', `${LEAVE} ${PRIVATE}`, 1_001)],
      test: [step('unit', `${FINDS} ${IS_PRIVATE} echo two >"$ARTIFACT_DIR/2.txt"`)],
      post: [step('clean', `${FINDS} cat "$ARTIFACT_DIR/2.txt"; rm "$ARTIFACT_DIR"/*`, 2_002)],
    });
    const result = await job.result();
    expect(states(result)).toEqual(['rent succeeded', 'unit succeeded', 'clean succeeded']);
  },

  'of a step that is stopped: post begins with what it left': async ({ world }) => {
    const job = await ClusterJob.start(world, 'stopped', {
      test: [step('unit', `${LEAVE} echo up; ${TICK}`)],
      post: [step('clean', FINDS)],
    });
    await job.up('unit');
    await job.handle.signal('cancel', 'enough');
    expect(states(await job.result())).toEqual(['unit aborted cancelled', 'clean succeeded']);
  },
};

await describeWithLab(
  'claims of jobs without a store',
  { temporal: true, nodes: 'kubelet' },
  (lab) => {
    together(async () => await WithClaims.open(lab), scenarios, {
      afterwards: {
        'nothing is left in the cluster': async ({ world }) => {
          await world.expectNothingLeft();
          const { name: namespace, core } = world.namespace;
          const { items } = await core.listNamespacedPersistentVolumeClaim({ namespace });
          expect(items).toEqual([]);
        },
      },
    });
  },
);
