/**
 * Checks whether the pods of this installation belong to workflows of another Temporal namespace.
 */
import { Client, type ConnectionLike } from '@temporalio/client';
import type { Compute } from '../../activities/ports/compute.ts';
import { temporalNamespaceId } from '../../activities/shared/temporalNamespace.ts';
import type { OwnedObject } from '../../core/sweep/ownedObject.ts';
import { oneLine, type HoldfastConfig } from '../settings/config.ts';
import type { Finding } from './finding.ts';

/** Lists the pods of this installation. Never throws. */
export async function checkOtherTemporal(
  config: HoldfastConfig,
  connection: ConnectionLike,
  compute: Compute,
): Promise<Finding[]> {
  try {
    const pods = (await compute.ownedObjects?.list('pod')) ?? [];
    const { namespace } = config.temporal;
    const own = await temporalNamespaceId(new Client({ connection, namespace }));
    return evaluateOtherTemporal(config.installation, own, pods);
  } catch (error) {
    return [
      {
        level: 'warning',
        message: `failed to find out which Temporal namespace the pods of installation "${config.installation}" belong to: ${oneLine(error)}`,
        fix: 'fix the cause in the message, then run "holdfast doctor"',
      },
    ];
  }
}

/**
 * Returns a warning for each other Temporal namespace.
 * @param ownId - ID of this worker's Temporal namespace
 */
export function evaluateOtherTemporal(
  installation: string,
  ownId: string,
  pods: readonly OwnedObject[],
): Finding[] {
  const ids = pods.flatMap(({ identity }) => identity?.temporalNamespaceId ?? []);
  const others = Map.groupBy(
    ids.filter((id) => id !== ownId),
    (id) => id,
  );
  return [...others].map(([id, { length }]) => ({
    level: 'warning',
    message: `HOLDFAST_INSTALLATION: ${length} pods of installation "${installation}" are of workflows in another Temporal namespace (ID ${id}), and the sweep leaves them alone`,
    fix: `give each installation a unique name; if that namespace was deleted: holdfast sweep --take-over ${id}`,
  }));
}
