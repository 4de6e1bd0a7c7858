import type { FastifyInstance } from 'fastify';
import * as answers from './responses.ts';
import { sees } from './credentials.ts';
import { annotationsJson, jobJson, repositoryJson, runJson } from './githubJson.ts';
import { paginate } from './pages.ts';
import { serve, type Call } from './rest.ts';
import type { SimulatedJob } from './types.ts';
import { loginOf } from './userEndpoints.ts';
import type { World } from './world.ts';

const scope = ({ owner, repo }: Record<string, string>): string => `repos/${owner}/${repo}`;

/**
 * Serves workflow runs and their jobs, as needed to find queued jobs:
 * https://docs.github.com/rest/actions/workflow-jobs
 */
export function serveJobEndpoints(server: FastifyInstance, world: World): void {
  const jobs = `${answers.DOCS}/actions/workflow-jobs`;
  const runs = `${answers.DOCS}/actions/workflow-runs`;
  serve(server, world, {
    method: 'GET',
    path: '/repos/{owner}/{repo}/actions/jobs/{job_id}',
    scope,
    docs: `${jobs}#get-a-job-for-a-workflow-run`,
    answer: (call) => {
      const job = jobsOf(world, call).find(({ id }) => id === Number(call.params['job_id']));
      return job ? { status: 200, body: jobJson(job) } : answers.notFound(call.docs);
    },
  });
  serve(server, world, {
    method: 'POST',
    path: '/repos/{owner}/{repo}/actions/jobs/{job_id}/rerun',
    scope,
    docs: `${runs}#re-run-a-job-from-a-workflow-run`,
    answer: (call) => rerunAnswer(world, call),
  });
  serve(server, world, {
    method: 'GET',
    path: '/repos/{owner}/{repo}/check-runs/{check_run_id}/annotations',
    scope,
    docs: `${answers.DOCS}/checks/runs#list-check-run-annotations`,
    answer: (call) => {
      const id = Number(call.params['check_run_id']);
      const job = jobsOf(world, call).find((each) => each.id === id);
      if (job === undefined) return answers.notFound(call.docs);
      return { status: 200, body: annotationsJson(job) };
    },
  });
  serve(server, world, {
    method: 'GET',
    path: '/repos/{owner}/{repo}/actions/runs/{run_id}',
    scope,
    docs: `${runs}#get-a-workflow-run`,
    answer: (call) => {
      const id = Number(call.params['run_id']);
      const run = runJson(jobsOf(world, call).filter((job) => job.run_id === id));
      return run === undefined ? answers.notFound(call.docs) : { status: 200, body: run };
    },
  });
  serve(server, world, {
    method: 'POST',
    path: '/repos/{owner}/{repo}/actions/runs/{run_id}/force-cancel',
    scope,
    docs: `${runs}#force-cancel-a-workflow-run`,
    answer: (call) => forceCancelAnswer(world, call),
  });
  serve(server, world, {
    method: 'GET',
    path: '/repos/{owner}/{repo}/actions/runs',
    scope,
    docs: `${runs}#list-workflow-runs-for-a-repository`,
    answer: (call) => {
      const all = runsOf(world, call).filter(
        (run) => call.query['status'] === undefined || run['status'] === call.query['status'],
      );
      const { items, headers } = paginate(all.toReversed(), call);
      return { status: 200, body: { total_count: all.length, workflow_runs: items }, headers };
    },
  });
  serve(server, world, {
    method: 'GET',
    path: '/repos/{owner}/{repo}/actions/runs/{run_id}/jobs',
    scope,
    docs: `${jobs}#list-jobs-for-a-workflow-run`,
    answer: (call) => {
      const ofRun = jobsOf(world, call).filter(
        (job) => job.run_id === Number(call.params['run_id']),
      );
      const latest = Math.max(...ofRun.map((job) => job.run_attempt));
      const found =
        call.query['filter'] === 'all' ? ofRun : ofRun.filter((job) => job.run_attempt === latest);
      if (found.length === 0) return answers.notFound(call.docs);
      const { items, headers } = paginate(found, call);
      return {
        status: 200,
        body: { total_count: found.length, jobs: items.map(jobJson) },
        headers,
      };
    },
  });
  serve(server, world, {
    method: 'GET',
    path: '/orgs/{org}/repos',
    scope: ({ org }) => `orgs/${org}`,
    docs: `${answers.DOCS}/repos/repos#list-organization-repositories`,
    answer: (call) => {
      const { items, headers } = paginate(repositoriesOf(world, `${call.params['org']}/`), call);
      return { status: 200, body: items.map(repositoryJson), headers };
    },
  });
  serve(server, world, {
    method: 'GET',
    path: '/installation/repositories',
    docs: `${answers.DOCS}/apps/installations#list-repositories-accessible-to-the-app-installation`,
    answer: (call) => {
      const { credential } = call;
      if (credential?.kind !== 'app') return answers.forbidden('app', call.docs);
      const all = repositoriesOf(world, '').filter((repo) => sees(credential, `repos/${repo}`));
      const { items, headers } = paginate(all, call);
      const selection = credential.scopes.some(
        (scope) => scope.startsWith('repos/') && scope.endsWith('/*'),
      )
        ? 'all'
        : 'selected';
      return {
        status: 200,
        body: {
          total_count: all.length,
          repository_selection: selection,
          repositories: items.map(repositoryJson),
        },
        headers,
      };
    },
  });
  serve(server, world, {
    method: 'GET',
    path: '/rate_limit',
    auth: 'optional',
    docs: `${answers.DOCS}/rate-limit/rate-limit#get-rate-limit-status-for-the-authenticated-user`,
    answer: (call) => {
      const core = world.limits.status(call.credential?.name ?? 'anonymous');
      const other = { ...core, limit: 30, used: 0, remaining: 30 };
      const registration = { ...core, limit: 10_000, used: 0, remaining: 10_000 };
      return {
        status: 200,
        body: {
          resources: {
            core,
            search: other,
            graphql: other,
            actions_runner_registration: registration,
          },
          rate: core,
        },
      };
    },
  });
}

/** GitHub accepts it once all of the run has ended, for a job that did not succeed, 50 times. */
function rerunAnswer(world: World, call: Call): answers.Answer {
  const job = jobsOf(world, call).find(({ id }) => id === Number(call.params['job_id']));
  if (job === undefined) return answers.notFound(call.docs);
  const run = runJson(world.jobs.ofRun(job.run_id));
  if (run?.['status'] !== 'completed')
    return answers.rerunRefused('This workflow is already running', call.docs);
  if (job.conclusion === 'success' || Number(run['run_attempt']) > MAX_RERUNS)
    return answers.rerunRefused(
      'The workflow run containing this job cannot be retried',
      call.docs,
    );
  world.dispatch.rerunJob(job);
  return { status: 201, body: {} };
}

function forceCancelAnswer(world: World, call: Call): answers.Answer {
  const jobs = jobsOf(world, call).filter(({ run_id }) => run_id === Number(call.params['run_id']));
  const run = runJson(jobs);
  if (run === undefined) return answers.notFound(call.docs);
  if (run['status'] === 'completed')
    return answers.runEnded('Cannot cancel a workflow run that is completed.', call.docs);
  world.dispatch.forceCancel(jobs, loginOf(world, call));
  return { status: 202, body: {} };
}

/** https://docs.github.com/en/actions/how-tos/manage-workflow-runs/re-run-workflows-and-jobs */
const MAX_RERUNS = 50;

function jobsOf(world: World, call: Call): SimulatedJob[] {
  const repo = `${call.params['owner']}/${call.params['repo']}`.toLowerCase();
  return world.jobs.all().filter((job) => job.repo.toLowerCase() === repo);
}

/**
 * Returns repositories with jobs, the most recent push first. Here a push is the start of a job.
 */
function repositoriesOf(world: World, owner: string): string[] {
  const names = world.jobs
    .all()
    .map(({ repo }) => repo)
    .filter((repo) => repo.toLowerCase().startsWith(owner.toLowerCase()));
  return [...new Set(names.toReversed())];
}

function runsOf(world: World, call: Call): Record<string, unknown>[] {
  const byRun = Map.groupBy(jobsOf(world, call), (job) => job.run_id);
  return [...byRun.values()].map((jobs) => runJson(jobs)).filter((run) => run !== undefined);
}
