import { expect, test } from '@jest/globals';
import { unschedulableReason } from '../../../core/domain/unschedulableReason.ts';

test.each([
  [
    '0/1 nodes are available: 1 Insufficient cpu. preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod.',
    'Insufficient cpu',
  ],
  [
    '0/3 nodes are available: 1 Insufficient memory, 2 node(s) had untolerated taint {gpu: true}.',
    'Insufficient memory, node(s) had untolerated taint {gpu: true}',
  ],
  ['0/2 nodes are available: 1 Insufficient cpu, 1 Insufficient cpu.', 'Insufficient cpu'],
  ['SchedulingGated', 'SchedulingGated'],
])('%s', (message, reason) => {
  expect(unschedulableReason(message)).toBe(reason);
});
