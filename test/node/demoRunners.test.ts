import { ClusterWorld } from '../support/clusterWorld.ts';
import { cleanEnd, demoRunners, reportedOnce } from '../support/demoRunners.ts';
import { describeWithLab } from '../support/lab.ts';
import { together } from '../support/together.ts';

await describeWithLab('runners with pods', { temporal: true, nodes: 'kubelet' }, (lab) => {
  together(async () => await ClusterWorld.open(lab), demoRunners, { afterwards: cleanEnd });
});

await describeWithLab('runners with two workers', { temporal: true, nodes: 'kubelet' }, (lab) => {
  together(async () => await ClusterWorld.open(lab, { workers: 2 }), demoRunners, {
    afterwards: { ...cleanEnd, ...reportedOnce },
  });
});

await describeWithLab(
  'runners with pods without a supervisor',
  { temporal: true, nodes: 'kubelet' },
  (lab) => {
    together(async () => await ClusterWorld.open(lab, { supervisor: false }), demoRunners, {
      afterwards: cleanEnd,
    });
  },
);
