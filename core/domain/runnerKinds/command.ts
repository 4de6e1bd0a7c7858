import type { RunnerKind } from './runnerKind.ts';

/** A plain command that no CI server knows: every other part of a runner's life, and one job, itself. */
export const COMMAND_RUNNER: RunnerKind = {
  defaultLabels: [],
  exitStatuses: {},
  stop: { onTerm: 'stop', signalTarget: 'group' },
};
