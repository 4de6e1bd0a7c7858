/** The activities that workflows call, built from the ports. */
import type { HoldfastActivities } from '../core/activities/index.ts';
import { admitDeregistration, admitRerun, admitRunner } from './runner/admit.ts';
import { admitJob } from './job/admitJob.ts';
import { awaitClaims, fenceClaims } from './runner/claims.ts';
import { checkInputs } from './shared/checkedInput.ts';
import { awaitRunnerOnline } from './runner/awaitRunnerOnline.ts';
import { requireLocation } from './shared/clusterActivity.ts';
import { awaitPod, getPod } from './runner/pods.ts';
import type { ActivityPorts } from './ports/activityPorts.ts';
import { findProvisioned, provision } from './runner/provision.ts';
import { awaitRerun } from './rerun/awaitRerun.ts';
import { findLostJob } from './rerun/findLostJob.ts';
import { forceCancelRun } from './rerun/forceCancelRun.ts';
import { requestRerun } from './rerun/requestRerun.ts';
import { removeRegistration } from './runner/removeRegistration.ts';
import { admitListener } from './scaleSet/admitListener.ts';
import { closeScaleSet } from './scaleSet/closeScaleSet.ts';
import { listen } from './scaleSet/listen.ts';
import { startListener } from './scaleSet/startListener.ts';
import { createSetActivities } from './runnerSet/createSetActivities.ts';
import { RunnerEventBatcher, type NotifySet } from './runnerSet/runnerEventBatcher.ts';
import { sweepLocation } from './sweep/sweepLocation.ts';
import { tearDown } from './runner/tearDown.ts';

/** Builds the activities. Pass the result to a Temporal Worker, or let `HoldfastPlugin` do it. */
export function createActivities(ports: ActivityPorts): HoldfastActivities {
  const events = new RunnerEventBatcher();
  const notifySet: NotifySet = async (event) => await events.notify(event);
  return checkInputs({
    ...createSetActivities(ports, events),
    admitRunner: (input) => admitRunner(ports, input),
    admitJob: (input) => admitJob(ports, input),
    admitDeregistration: async (input) => admitDeregistration(ports, input),
    admitRerun: async (input) => admitRerun(ports, input),
    findLostJob: (input) => findLostJob(ports, input),
    awaitRerun: (input) => awaitRerun(ports, input),
    forceCancelRun: (input) => forceCancelRun(ports, input),
    requestRerun: (input) => requestRerun(ports, input),
    provision: requireLocation(ports, provision),
    findProvisioned: requireLocation(ports, findProvisioned),
    awaitPod: requireLocation(
      ports,
      async (_ports, input) => await awaitPod(ports, notifySet, input),
    ),
    getPod: requireLocation(ports, getPod),
    awaitRunnerOnline: (input) => awaitRunnerOnline(ports, input),
    removeRegistration: (input) => removeRegistration(ports, input),
    tearDown: requireLocation(
      ports,
      async (_ports, input) => await tearDown(ports, notifySet, input),
    ),
    fenceClaims: requireLocation(ports, fenceClaims),
    awaitClaims: requireLocation(ports, awaitClaims),
    admitListener: async ({ input }) => admitListener(ports, input),
    listen: (input) => listen(ports, input),
    closeScaleSet: (input) => closeScaleSet(ports, input),
    startListener,
    sweepPlace: (input) => sweepLocation(ports, input),
  });
}
