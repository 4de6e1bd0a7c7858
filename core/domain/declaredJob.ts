/** From a declared job to one run of it. Pure. */
import type { JobDefinitionInput, JobInput, JobSource } from '../contract/index.ts';
import { forOutsiders } from './untrustedJobs.ts';

/** What each run is started with, without what it is for. */
export function jobOf({
  on: _on,
  untrusted: _untrusted,
  maxConcurrency: _most,
  intervals: _intervals,
  ...job
}: JobDefinitionInput): JobInput {
  return job;
}

/** One run. The times of a schedule have no commit that could be reported on. */
export function runOf(definition: JobDefinitionInput, source: JobSource): JobInput {
  const job = {
    ...jobOf(definition),
    source,
    ...(source.event === 'schedule' ? { report: false } : {}),
  };
  return source.untrusted === true ? forOutsiders(job) : job;
}
