/** Everything workflows may ask of the world, built from the ports. */
import type { HoldfastActivities } from '../core/calls/index.ts';
import { admitDeregistration, admitRunner } from './admit.ts';
import { awaitClaims, fenceClaims } from './claims.ts';
import { lookUpRunner } from './lookUp.ts';
import { awaitPod, observePod } from './pods.ts';
import type { ActivityPorts } from './ports.ts';
import { findProvisioned, provision } from './provision.ts';
import { removeRegistration } from './removeRegistration.ts';
import { createSetActivities } from './sets/createSetActivities.ts';
import { tearDown } from './tearDown.ts';

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
    removeRegistration: (input) => removeRegistration(ports, input),
    tearDown: (input) => tearDown(ports, input),
    fenceClaims: (input) => fenceClaims(ports, input),
    awaitClaims: (input) => awaitClaims(ports, input),
  };
}
