/** This machine as a real node for pods. */
import { down, status, up, type LabState } from '../lab/lab.ts';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import { interruption } from './interruption.ts';
import type { WorldOptions } from './world.ts';

/** Components of a lab with a kubelet. */
export interface Node {
  /** Folder of the lab. */
  readonly stateDir: string;
  /** Path of the kubeconfig. */
  readonly kubeconfig: string;
  /** Temporal, if it was requested. */
  readonly temporal?: LabState['temporal'];
}

/**
 * Starts Kubernetes with a kubelet, and Temporal if requested, and runs a function. Stops the
 * components at the end in every case, unless they ran before.
 */
export async function withNode<T>(
  { stateDir: base, keep, progress }: WorldOptions,
  run: (node: Node) => Promise<T>,
  { temporal = false } = {},
): Promise<T> {
  // Use another lab than the other benchmarks, because a lab has one kind of nodes.
  const stateDir = `${base}-kubelet`;
  const wasUp = Object.values((await status({ stateDir })).components).some(
    ({ state }) => state !== 'down',
  );
  try {
    return await Promise.race([interruption(), bringUpAndRun()]);
  } finally {
    if (keep || wasUp)
      progress(`the components keep running: npm run lab -- status --state-dir ${stateDir}`);
    else await down({ stateDir, purge: true, progress });
  }

  async function bringUpAndRun(): Promise<T> {
    progress(`starting ${temporal ? 'Temporal and ' : ''}Kubernetes with a kubelet in ${stateDir}`);
    const lab = await up({ stateDir, temporal, kubernetes: true, nodes: 'kubelet', progress });
    if (!lab.kubernetes) throw new Error('the lab started without Kubernetes');
    return await run({
      stateDir: lab.stateDir,
      kubeconfig: lab.kubernetes.kubeconfig,
      ...omitUndefined({ temporal: lab.temporal }),
    });
  }
}
