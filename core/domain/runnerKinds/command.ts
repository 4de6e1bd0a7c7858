import type { RunnerKind } from './runnerKind.ts';

/** A plain command without a CI server. The command itself is the only job. */
export const COMMAND_RUNNER: RunnerKind = {
  defaultLabels: [],
  exitStatuses: {},
  stop: { onTerm: 'stop', signalTarget: 'group', finishesJob: false },
};
