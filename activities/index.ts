/** Everything workflows may ask of the world, built from the ports. */
import type { HoldfastActivities } from '../core/calls/index.ts';
import { admitDeregistration, admitRunner } from './admit.ts';
import { admitJob } from './admitJob.ts';
import { admitReport } from './admitReport.ts';
import { awaitClaims, fenceClaims } from './claims.ts';
import { createDefinitionActivities } from './definitions/createDefinitionActivities.ts';
import { lookUpRunner } from './lookUp.ts';
import { inItsPlace } from './onCluster.ts';
import { awaitPod, observePod } from './pods.ts';
import type { ActivityPorts } from './ports.ts';
import { findProvisioned, provision } from './provision.ts';
import { removeRegistration } from './removeRegistration.ts';
import { reportStatus } from './reportStatus.ts';
import { createSetActivities } from './sets/createSetActivities.ts';
import { RunnerNewsBatches, type TellSet } from './sets/runnerNews.ts';
import { sweepPlace } from './sweep/sweepPlace.ts';
import { tearDown } from './tearDown.ts';

/** Builds the activities. Pass the result to a Temporal Worker, or let `HoldfastPlugin` do it. */
export function createActivities(ports: ActivityPorts): HoldfastActivities {
  const news = new RunnerNewsBatches();
  const tell: TellSet = async (word) => await news.tell(word);
  return {
    ...createSetActivities(ports, news),
    ...createDefinitionActivities(ports),
    admitRunner: (input) => admitRunner(ports, input),
    admitJob: async (input) => admitJob(ports, input),
    admitReport: async (input) => admitReport(ports, input),
    reportStatus: (input) => reportStatus(ports, input),
    admitDeregistration: async (input) => admitDeregistration(ports, input),
    provision: inItsPlace(ports, provision),
    findProvisioned: inItsPlace(ports, findProvisioned),
    awaitPod: inItsPlace(ports, async (_ports, input) => await awaitPod(ports, tell, input)),
    observePod: inItsPlace(ports, observePod),
    lookUpRunner: (input) => lookUpRunner(ports, input),
    removeRegistration: (input) => removeRegistration(ports, input),
    tearDown: inItsPlace(ports, async (_ports, input) => await tearDown(ports, tell, input)),
    fenceClaims: inItsPlace(ports, fenceClaims),
    awaitClaims: inItsPlace(ports, awaitClaims),
    sweepPlace: (input) => sweepPlace(ports, input),
  };
}
