/** A real node for pods: this machine. */
import { down, status, up, type LabState } from '../lab/lab.ts';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import { interruption } from './interruption.ts';
import type { WorldOptions } from './world.ts';

export interface Node {
  /** Folder of the lab. */
  readonly stateDir: string;
  /** Path of the kubeconfig. */
  readonly kubeconfig: string;
  /** Where Temporal is, if it was asked for. */
  readonly temporal?: LabState['temporal'];
}

/** Brings up Kubernetes with a kubelet, and Temporal where it is asked for, runs, and takes everything down again, whatever comes. What was up before stays up. */
export async function withNode<T>(
  { stateDir: base, keep, progress }: WorldOptions,
  run: (node: Node) => Promise<T>,
  { temporal = false } = {},
): Promise<T> {
  const stateDir = `${base}-kubelet`; // the other has fake nodes, and a lab has one kind
  const wasUp = Object.values((await status({ stateDir })).components).some(
    ({ state }) => state !== 'down',
  );
  try {
    return await Promise.race([interruption(), bringUpAndRun()]);
  } finally {
    if (keep || wasUp)
      progress(`the components stay up: npm run lab -- status --state-dir ${stateDir}`);
    else await down({ stateDir, purge: true, progress });
  }

  async function bringUpAndRun(): Promise<T> {
    progress(
      `bringing up ${temporal ? 'Temporal and ' : ''}Kubernetes with a kubelet in ${stateDir}`,
    );
    const lab = await up({ stateDir, temporal, kubernetes: true, nodes: 'kubelet', progress });
    if (!lab.kubernetes) throw new Error('the lab came up without Kubernetes');
    return await run({
      stateDir: lab.stateDir,
      kubeconfig: lab.kubernetes.kubeconfig,
      ...omitUndefined({ temporal: lab.temporal }),
    });
  }
}
