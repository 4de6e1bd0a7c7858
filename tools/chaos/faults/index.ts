import type { FaultKind } from '../faultKinds.ts';
import { ciServerFaults } from './ciServerFaults.ts';
import type { Fault } from './fault.ts';
import { runnerFaults } from './runnerFaults.ts';
import { podFaults } from './podFaults.ts';
import { serverFaults } from './serverFaults.ts';
import { workerFaults } from './workerFaults.ts';

/** Implementation of each kind of fault. */
export const FAULTS: Readonly<Record<FaultKind, Fault>> = {
  ...workerFaults,
  ...serverFaults,
  ...podFaults,
  ...runnerFaults,
  ...ciServerFaults,
};
