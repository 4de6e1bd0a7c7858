import { z } from 'zod';
import type { VersionDeadline } from '../../../core/domain/ciServer.ts';
import { omitUndefined } from '../../../core/domain/omitUndefined.ts';
import type { CiRunner } from '../../ports/ciServer.ts';

/** The schemas contain only the fields that are used; other fields are ignored. */
/** IDs are numbers at GitHub and strings in Holdfast. */
const id = z.number().int().transform(String);

/** Schema of one self-hosted runner, converted to {@link CiRunner}. */
export const runnerAnswer = z
  .object({
    id,
    name: z.string(),
    status: z.string(),
    busy: z.boolean(),
    labels: z.array(z.object({ name: z.string() })),
  })
  .transform(({ id, name, status, busy, labels }): CiRunner => ({
    id,
    name,
    online: status === 'online',
    busy,
    labels: labels.map((label) => label.name),
  }));

/** Schema of one page of self-hosted runners. */
export const runnerListAnswer = z.object({
  total_count: z.number().int(),
  runners: z.array(runnerAnswer),
});

/** Schema of the response that creates a JIT configuration. */
export const jitAnswer = z.object({
  runner: z.object({ id, name: z.string() }),
  encoded_jit_config: z.string().min(1),
});

/** Schema of the response that creates a registration token. */
export const registrationTokenAnswer = z.object({
  token: z.string().min(1),
  expires_at: z.string(),
});

const runnerGroup = z.object({
  id: z.number().int(),
  name: z.string().min(1),
  allows_public_repositories: z.boolean().optional(),
});
/** A runner group, with its numeric ID. */
export type RunnerGroup = z.output<typeof runnerGroup>;
/** Schema of one page of runner groups. */
export const runnerGroupListAnswer = z.object({
  total_count: z.number().int(),
  runner_groups: z.array(runnerGroup),
});

/** Time of GitHub, as ms since the epoch. */
const time = z.iso.datetime({ offset: true }).transform((text) => Date.parse(text));

const repository = z.object({
  full_name: z.string(),
  archived: z.boolean().nullish(),
  disabled: z.boolean().nullish(),
  pushed_at: z.string().nullish(),
});

/** Schema of one page of the repositories of an organization or user. */
export const repositoryListAnswer = z.array(repository);

/** Schema of one page of the repositories that an app installation can access. */
export const installationRepositoriesAnswer = z.object({
  total_count: z.number().int(),
  repository_selection: z.string().nullish(),
  repositories: z.array(repository),
});

/** Schema of one page of workflow runs. */
export const runListAnswer = z.object({
  total_count: z.number().int(),
  workflow_runs: z.array(z.object({ id: z.number().int() })),
});

/** Schema of one job of a workflow run. Times are in ms since the epoch. */
export const jobAnswer = z.object({
  id,
  run_id: id.nullish(),
  run_attempt: z.number().int().nullish(),
  status: z.string(),
  labels: z.array(z.string()),
  created_at: time.nullish(),
  started_at: time.nullish(),
  runner_name: z.string().nullish(),
});

/** Schema of a job with what a rerun depends on. */
export const jobStateAnswer = z.object({
  id,
  run_id: id,
  run_attempt: z.number().int().nullish(),
  name: z.string(),
  status: z.string(),
  conclusion: z.string().nullable(),
  created_at: time.nullish(),
  started_at: time.nullish(),
  completed_at: time.nullish(),
  runner_name: z.string().nullish(),
});

/** Schema of one page of such jobs. */
export const jobStateListAnswer = z.object({
  total_count: z.number().int(),
  jobs: z.array(jobStateAnswer),
});

/** Schema of a workflow run with what a rerun depends on. */
export const runAnswer = z.object({
  status: z.string().nullable(),
  run_attempt: z.number().int().nullish(),
});

/** Schema of the installation of an App. */
export const installationAnswer = z.object({ permissions: z.record(z.string(), z.string()) });

/** Schema of the user of a token. */
export const userAnswer = z.object({ login: z.string() });
/** Schema of an App. */
export const appAnswer = z.object({ slug: z.string() });

/** Schema of one page of the annotations of a check run. */
export const annotationListAnswer = z.array(z.object({ message: z.string().nullish() }));

/** Schema of one page of the jobs of a workflow run. */
export const jobListAnswer = z.object({ total_count: z.number().int(), jobs: z.array(jobAnswer) });

/** Schema of one page of webhook deliveries. */
export const deliveryListAnswer = z.array(
  z.object({
    id: z.number().int(),
    guid: z.string(),
    delivered_at: time,
    status_code: z.number().int(),
    event: z.string(),
  }),
);
/** A webhook delivery in a list, without its payload. */
export type ListedDelivery = z.output<typeof deliveryListAnswer>[number];

/** GitHub does not document the format, so a date without a time is accepted too. */
const deadline = z
  .string()
  .transform((text) => Date.parse(text))
  .refine((at) => !Number.isNaN(at), 'must be a time');

/**
 * Schema of the deadlines of a runner version:
 * https://github.blog/changelog/2026-09-03-github-actions-early-september-2026-updates
 */
export const deprecationAnswer = z
  .object({
    runtime_deprecates_at: deadline.nullish(),
    registration_deprecates_at: deadline.nullish(),
  })
  .transform(
    ({
      runtime_deprecates_at: runtime,
      registration_deprecates_at: registration,
    }): VersionDeadline =>
      omitUndefined({
        jobsUntil: runtime ?? undefined,
        registrationUntil: registration ?? undefined,
      }),
  );
