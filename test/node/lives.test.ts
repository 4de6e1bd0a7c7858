import { ClusterWorld } from '../support/clusterWorld.ts';
import { cleanEnd, demoLives, toldOnce } from '../support/demoLives.ts';
import { describeWithLab } from '../support/lab.ts';
import { together } from '../support/together.ts';

await describeWithLab('runners with pods', { temporal: true, nodes: 'kubelet' }, (lab) => {
  together(async () => await ClusterWorld.open(lab), demoLives, { afterwards: cleanEnd });
});

await describeWithLab('runners with two workers', { temporal: true, nodes: 'kubelet' }, (lab) => {
  together(async () => await ClusterWorld.open(lab, { workers: 2 }), demoLives, {
    afterwards: { ...cleanEnd, ...toldOnce },
  });
});

await describeWithLab(
  'runners with pods without a supervisor',
  { temporal: true, nodes: 'kubelet' },
  (lab) => {
    together(async () => await ClusterWorld.open(lab, { supervisor: false }), demoLives, {
      afterwards: cleanEnd,
    });
  },
);
