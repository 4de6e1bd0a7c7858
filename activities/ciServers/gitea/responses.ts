import { z } from 'zod';
import type { CiJob } from '../../../core/domain/ciServer.ts';
import { omitUndefined } from '../../../core/domain/omitUndefined.ts';
import { attemptOf } from './attempt.ts';
import { normalizeGiteaLabels } from './labels.ts';

/** The schemas contain only the fields that are used; other fields are ignored. */
const id = z.int().positive();
/** Time (ms since the epoch). A time that is not set is in the year 1970. */
const time = z.iso.datetime({ offset: true }).transform((text) => Date.parse(text) || undefined);

/** Schema of one runner. Its `busy` is a guess from the last ten seconds, and is not used. */
export const runnerAnswer = z.object({
  id: id.transform(String),
  name: z.string(),
  status: z.string(),
  disabled: z.boolean(),
  labels: z.array(z.object({ name: z.string() })).nullish(),
});
/** A runner as Gitea lists it. */
export type GiteaRunner = z.output<typeof runnerAnswer>;

/** Schema of one page of runners. */
export const runnerListAnswer = z
  .object({ total_count: z.int(), runners: z.array(runnerAnswer).nullable() })
  .transform(({ total_count: total, runners }) => ({ total, items: runners ?? [] }));

/** Schema of the response that contains the registration token of a scope. */
export const registrationTokenAnswer = z.object({ token: z.string().min(1) });

/** Schema of the response of `RunnerService/Register`, in protobuf's JSON: IDs are strings. */
export const registerAnswer = z.object({
  runner: z.object({
    id: z.string().regex(/^[1-9]\d*$/),
    uuid: z.string().min(1),
    token: z.string().min(1),
    name: z.string(),
  }),
});

/** Schema of the user of a token. */
export const userAnswer = z.object({ login: z.string() });

/** Schema of an organization. */
export const organizationAnswer = z.object({ id });

const job = z
  .object({
    id,
    run_id: z.int().nonnegative().nullish(),
    /** `…/repos/OWNER/REPO/actions/jobs/ID`. A job names its repository nowhere else. */
    url: z.string().regex(/\/repos\/[^/]+\/[^/]+\/actions\/jobs\/\d+$/),
    labels: z.array(z.string()).nullish(),
    run_attempt: z.int().nonnegative(),
    status: z.string(),
    runner_id: z.int().nonnegative().nullish(),
    runner_name: z.string().nullish(),
    created_at: time,
    started_at: time,
  })
  .transform((found): GiteaJob => {
    const isRunning = found.status === 'in_progress';
    return {
      id: String(found.id),
      runAttempt: attemptOf({ runAttempt: found.run_attempt, runnerId: found.runner_id }),
      repository: found.url.split('/').slice(-5, -3).join('/'),
      labels: normalizeGiteaLabels(found.labels ?? []),
      status: isRunning ? 'in_progress' : 'queued',
      queuedAt: found.created_at ?? found.started_at ?? 0,
      ...omitUndefined({
        runId: found.run_id ? String(found.run_id) : undefined,
        startedAt: isRunning ? found.started_at : undefined,
        runnerName: (isRunning && found.runner_name) || undefined,
      }),
      runnerId: isRunning && found.runner_id ? String(found.runner_id) : undefined,
    };
  });
/** A job, with the ID of the runner that is running it. */
export type GiteaJob = CiJob & { readonly runnerId: string | undefined };

/** Schema of one page of jobs that are queued or in progress. */
export const jobListAnswer = z
  .object({ total_count: z.int(), jobs: z.array(job).nullable() })
  .transform(({ total_count: total, jobs }) => ({ total, items: jobs ?? [] }));
