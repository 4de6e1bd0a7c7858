import { expect, test } from '@jest/globals';
import { QueuedJobs, type AskList } from '../../../activities/ciServers/github/queuedJobs.ts';

const PAGE = 100;

/** An organization with this many repositories, every second one of them archived, without runs. */
function organizationWith(repositories: number): { ask: AskList; pages: () => number } {
  let pages = 0;
  const ask: AskList = async (schema, { route, parameters }) => {
    if (!route.endsWith('/repos')) return schema.parse({ total_count: 0, workflow_runs: [] });
    pages++;
    const from = (Number(parameters['page']) - 1) * PAGE;
    return schema.parse(
      Array.from({ length: Math.min(PAGE, Math.max(0, repositories - from)) }, (_, index) => ({
        full_name: `acme/r${from + index}`,
        archived: index % 2 === 1,
      })),
    );
  };
  return { ask, pages: () => pages };
}

test.each([
  ['none', 0, 1, true],
  ['a page that is not full', 99, 1, true],
  ['full pages without another one', 200, 3, true],
  ['the maximum that is checked', 399, 4, true],
  ['more than the maximum, although few enough are active', 400, 4, false],
])('repositories of an organization: %s', async (_what, repositories, pages, complete) => {
  const organization = organizationWith(repositories);
  expect(
    await new QueuedJobs(organization.ask, false).of({ kind: 'organization', name: 'acme' }),
  ).toEqual({ jobs: [], complete });
  expect(organization.pages()).toBe(pages);
});

test('the waiting jobs of a run that waits for an approval are found', async () => {
  const ask: AskList = async (schema, { route, parameters }) => {
    if (route.endsWith('/jobs'))
      return schema.parse({
        total_count: 2,
        jobs: [
          { id: 1, status: 'waiting', labels: ['linux'] },
          { id: 2, status: 'queued', labels: ['linux'] },
        ],
      });
    return schema.parse({
      total_count: 1,
      workflow_runs: parameters['status'] === 'waiting' ? [{ id: 9 }] : [],
    });
  };
  expect(
    await new QueuedJobs(ask, false).of({ kind: 'repository', name: 'acme/app' }),
  ).toMatchObject({ jobs: [{ id: '2', status: 'queued' }], complete: true });
});

test('a run that goes back to the queued ones while the lists are read is found', async () => {
  // Its first job runs, and its second one waits for a runner.
  let status = 'in_progress';
  const ask: AskList = async (schema, { route, parameters }) => {
    if (route.endsWith('/jobs'))
      return schema.parse({
        total_count: 1,
        jobs: [{ id: 2, status: 'queued', labels: ['linux'] }],
      });
    // Its first job ends before the list of the running ones.
    if (parameters['status'] === 'in_progress') status = 'queued';
    const runs = parameters['status'] === status ? [{ id: 9 }] : [];
    return schema.parse({ total_count: runs.length, workflow_runs: runs });
  };
  expect(
    await new QueuedJobs(ask, false).of({ kind: 'repository', name: 'acme/app' }),
  ).toMatchObject({ jobs: [{ id: '2', status: 'queued' }], complete: true });
});

test('a check of many repositories stays within its requests', async () => {
  const asked = new Map<unknown, number>();
  const ask: AskList = async (schema, { route, parameters: { status } }) => {
    if (route.endsWith('/repos'))
      return schema.parse(
        Array.from({ length: PAGE }, (_, index) => ({ full_name: `acme/r${index}` })),
      );
    asked.set(status, (asked.get(status) ?? 0) + 1);
    return schema.parse({ total_count: 0, workflow_runs: [] });
  };
  await new QueuedJobs(ask, false).of({ kind: 'organization', name: 'acme' });
  // The maximum number of repositories leaves no requests for the queued runs again.
  expect(asked.get('queued')).toBe(300);
});

test.each([
  ['does not change', 0, 150, true],
  ['gets shorter while it is read, which moves a run across a page boundary', 1, 150, false],
])('a list of 150 queued runs that %s', async (_what, leaving, jobs, complete) => {
  let queued = Array.from({ length: 150 }, (_, index) => ({ id: index + 1 }));
  const ask: AskList = async (schema, { route, parameters }) => {
    if (route.endsWith('/jobs'))
      return schema.parse({
        total_count: 1,
        jobs: [{ id: Number(parameters['run_id']), status: 'queued', labels: ['linux'] }],
      });
    if (parameters['status'] !== 'queued')
      return schema.parse({ total_count: 0, workflow_runs: [] });
    const from = (Number(parameters['page']) - 1) * PAGE;
    const answer = schema.parse({
      total_count: queued.length,
      workflow_runs: queued.slice(from, from + PAGE),
    });
    queued = queued.slice(leaving);
    return answer;
  };
  const seen = await new QueuedJobs(ask, false).of({ kind: 'repository', name: 'acme/app' });
  expect([seen.jobs.length, seen.complete]).toEqual([jobs, complete]);
});

test('an enterprise has no list', async () => {
  const ask: AskList = () => {
    throw new Error('asked');
  };
  expect(await new QueuedJobs(ask, true).of({ kind: 'enterprise', name: 'big' })).toEqual({
    jobs: [],
    complete: false,
    unsupported: true,
  });
});

test('queued runs of all repositories come first, because requests may run out', async () => {
  const asked: unknown[] = [];
  const ask: AskList = async (schema, { route, parameters }) => {
    if (route.endsWith('/repos'))
      return schema.parse([{ full_name: 'acme/a' }, { full_name: 'acme/b' }]);
    const { repo, status, run_id: run } = parameters;
    asked.push([repo, status ?? run]);
    // The same run is in the list of those in progress by then.
    if (status !== undefined)
      return schema.parse({
        total_count: status === 'waiting' ? 0 : 1,
        workflow_runs: status === 'waiting' ? [] : [{ id: repo === 'a' ? 1 : 2 }],
      });
    return schema.parse({ total_count: 0, jobs: [] });
  };
  await new QueuedJobs(ask, false).of({ kind: 'organization', name: 'acme' });
  expect(asked.slice(0, 4)).toEqual(
    expect.arrayContaining([
      ['a', 'queued'],
      ['b', 'queued'],
      ['a', 1],
      ['b', 2],
    ]),
  );
  expect(asked).toHaveLength(4 + 4 + 2);
});
