/**
 * Public names of Holdfast's workflows: workflow types, signals, queries, updates, search
 * attributes, inputs and results. Every payload is plain JSON, so `temporal workflow
 * start|signal|query` with these names is enough to use Holdfast.
 *
 * @module holdfast/contract
 */
export * from './deregistration.ts';
export * from './inputError.ts';
export * from './job.ts';
export * from './jobGroup.ts';
export * from './jobInput.ts';
export * from './rerun.ts';
export * from './runner.ts';
export * from './runnerInput.ts';
export * from './runnerSet.ts';
export * from './runnerSetInput.ts';
export * from './scaleSet.ts';
export * from './searchAttributes.ts';
export * from './setCommand.ts';
export * from './taskQueues.ts';
export * from './sweep.ts';
export * from './sweepSchedule.ts';
export * from './why.ts';
