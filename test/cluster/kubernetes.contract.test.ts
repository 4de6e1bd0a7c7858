import { describeComputeContract } from '../support/computeContract.ts';
import { startKubernetesHarness } from '../support/kubernetesHarness.ts';
import { describeWithLab } from '../support/lab.ts';

await describeWithLab('kubernetes', { kubernetes: true }, (lab) => {
  describeComputeContract('kubernetes', () => startKubernetesHarness(lab.kubernetes!.kubeconfig));
});
