/**
 * Every public name of Holdfast's workflows in one place: workflow types, signals, queries, updates, search attributes,
 * inputs and results. Plain JSON with these names through `temporal workflow start|signal|query` is enough to use the product.
 *
 * @module holdfast/contract
 */
export * from './deregistration.ts';
export * from './job.ts';
export * from './jobGroup.ts';
export * from './jobInput.ts';
export * from './runner.ts';
export * from './runnerInput.ts';
export * from './runnerSet.ts';
export * from './runnerSetInput.ts';
export * from './searchAttributes.ts';
export * from './setCommand.ts';
export * from './taskQueues.ts';
export * from './sweep.ts';
export * from './sweepSchedule.ts';
