/**
 * The workflows of Holdfast. Re-export them from your own workflows file to run them in your own
 * Worker.
 *
 * @module holdfast/workflows
 */
export { runner } from './runner/runner.ts';
export { job } from './job/job.ts';
export { jobGroup } from './jobGroup/jobGroup.ts';
export { deregistration } from './deregistration.ts';
export { rerun } from './rerun.ts';
export { runnerSet } from './runnerSet/runnerSet.ts';
export { scaleSetListener } from './scaleSetListener/scaleSetListener.ts';
export { setCommand } from './setCommand/setCommand.ts';
export { sweep } from './sweep.ts';
