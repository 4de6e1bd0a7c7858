import { describeComputeContract } from '../support/computeContract.ts';
import { startProcessHarness } from '../support/processHarness.ts';

describeComputeContract('process', () => startProcessHarness());
