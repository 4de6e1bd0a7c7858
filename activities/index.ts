/** Everything workflows may ask of the world, built from the ports. */
import { admitDeregistration, admitRunner } from './admit.ts';
import { awaitNodeReleased, awaitPod, deleteClaims, observePod, stopPod, tearDown } from './pods.ts';
import type { ActivityPorts } from './ports.ts';
import { lookUpRunner } from './lookUp.ts';
import { findProvisioned, provision } from './provision.ts';
import { release } from './release.ts';
import { createSetActivities } from './sets/createSetActivities.ts';
import type { HoldfastActivities } from '../core/calls/index.ts';

/** Builds the activities. Pass the result to a Temporal Worker, or let `HoldfastPlugin` do it. */
export function createActivities(ports: ActivityPorts): HoldfastActivities {
  return {
    ...createSetActivities(ports),
    admitRunner: async (input) => admitRunner(ports, input),
    admitDeregistration: async (input) => admitDeregistration(ports, input),
    provision: (input) => provision(ports, input),
    findProvisioned: (input) => findProvisioned(ports, input),
    awaitPod: (input) => awaitPod(ports, input),
    observePod: (input) => observePod(ports, input),
    lookUpRunner: (input) => lookUpRunner(ports, input),
    release: (input) => release(ports, input),
    stopPod: (input) => stopPod(ports, input),
    tearDown: (input) => tearDown(ports, input),
    deleteClaims: (input) => deleteClaims(ports, input),
    awaitNodeReleased: (input) => awaitNodeReleased(ports, input),
  };
}
