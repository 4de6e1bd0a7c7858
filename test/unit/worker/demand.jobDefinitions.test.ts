import { beforeEach, expect, test } from '@jest/globals';
import { WorkflowNotFoundError, type Client } from '@temporalio/client';
import { jobDefinitionId, type RepositoryChange } from '../../../core/contract/index.ts';
import { JobDefinitions } from '../../../worker/webhook/jobDefinitions.ts';

const change: RepositoryChange = {
  event: 'push',
  commit: 'a'.repeat(40),
  ref: 'refs/heads/main',
  branch: 'main',
  at: '2026-11-23T08:00:00Z',
};
const [web, other] = [jobDefinitionId('acme/web', 'ci'), jobDefinitionId('acme/other', 'ci')];

let now: number;
/** What visibility says, and what is so. */
let listed: string[];
let running: Set<string>;
let looks: number;
let told: string[];
let definitions: JobDefinitions;

beforeEach(() => {
  [now, listed, running, looks, told] = [1_000_000, [web, other], new Set([web, other]), 0, []];
  const client = {
    withDeadline: async (_deadline: number, run: () => Promise<unknown>) => await run(),
    workflow: {
      async *list() {
        looks++;
        for (const workflowId of listed) yield { workflowId };
      },
      getHandle: (id: string) => ({
        describe: async () => ({ status: { name: running.has(id) ? 'RUNNING' : 'COMPLETED' } }),
        signal: async () => {
          if (!running.has(id)) throw new WorkflowNotFoundError('ended', id, undefined);
          told.push(id);
        },
      }),
    },
  };
  definitions = new JobDefinitions(
    () => client as unknown as Client,
    'holdfast',
    () => now,
  );
});

test('many changes of repositories that have none cost a look every two seconds', async () => {
  for (let each = 0; each < 200; each++, now += 50)
    expect(await definitions.tell('acme/nobody', change)).toBe(false);
  expect(looks).toBeLessThanOrEqual(6);
  listed.push(jobDefinitionId('acme/nobody', 'ci'));
  running.add(jobDefinitionId('acme/nobody', 'ci'));
  now += 2_001;
  expect(await definitions.tell('acme/nobody', change)).toBe(true);
});

test('one that a list leaves out, being behind or cut short, is told as long as it runs', async () => {
  expect(await definitions.tell('acme/web', change)).toBe(true);
  listed = [];
  for (let each = 0; each < 3; each++) {
    now += 60_000;
    expect(await definitions.tell('Acme/Web', change)).toBe(true);
  }
  running.delete(web);
  now += 60_000;
  expect(await definitions.tell('acme/web', change)).toBe(false);
  expect(told).toEqual([web, web, web, web]);
});

test('one that has ended and is still listed is nobody', async () => {
  running.delete(web);
  expect(await definitions.tell('acme/web', change)).toBe(false);
  expect(await definitions.tell('acme/other', change)).toBe(true);
});
