/**
 * Records the histories of scenarios: `npm run record-histories [-- SCENARIO...]`. Workflows and
 * activities are the real ones, on a Temporal dev server; compute and CI server are in memory, so
 * that a scenario takes seconds.
 *
 * The code must replay committed histories. Record those of a version again only before it is
 * published.
 */
import assert from 'node:assert/strict';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { WorkflowFailedError, type Client } from '@temporalio/client';
import { CancelledFailure } from '@temporalio/common';
import { Argument } from 'commander';
import { rerunWorkflowId, setWorkflowId } from '../../core/contract/index.ts';
import { createCommand, runCommand } from '../../tools/shared/commandLine.ts';
import { FakeCiServer } from '../support/fakeCiServer.ts';
import { FakeCompute } from '../support/fakeCompute.ts';
import { holdfastWorld } from '../support/holdfastWorld.ts';
import { temporalWithShortHistories } from '../support/shortHistories.ts';
import { HISTORIES, folderToRecord, type RecordedEvent } from './histories.ts';
import { historyToJson } from './historyJson.ts';
import { JOB_SCENARIOS, type JobScenario } from './jobScenarios.ts';
import { SCENARIOS, prepare, type Scenario, type Stage } from './scenarios.ts';
import { SET_SCENARIOS, type SetScenario } from './setScenarios.ts';

/** Low enough that a static runner, and the runs of a job, continue as new after some jobs; no other scenario gets that far. */
const SUGGEST_CONTINUE_AS_NEW_AT = 150;
const NAMES = [
  ...Object.keys(SCENARIOS),
  ...Object.keys(JOB_SCENARIOS),
  ...Object.keys(SET_SCENARIOS),
];
const PROJECT = dirname(dirname(dirname(fileURLToPath(import.meta.url))));

async function main(names: readonly string[]): Promise<void> {
  const folder = join(HISTORIES, folderToRecord());
  const histories = new Map<string, string>();
  const server = await temporalWithShortHistories(SUGGEST_CONTINUE_AS_NEW_AT);
  try {
    for (const name of names.length > 0 ? names : NAMES) {
      for (const [file, history] of await recordNamed(server.address, name)) {
        histories.set(file, history);
        process.stdout.write(`${file}: ${(history.length / 1024).toFixed(0)} KiB\n`);
      }
    }
  } finally {
    await server.teardown();
  }
  // Committed histories are deleted only after all scenarios were recorded.
  if (names.length === 0) await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true });
  for (const [file, history] of histories) await writeFile(join(folder, file), history);
}

/** Runs one scenario and returns the histories of its workflows, by file name. */
async function recordNamed(address: string, name: string): Promise<Map<string, string>> {
  const [jobs, set] = [JOB_SCENARIOS[name], SET_SCENARIOS[name]];
  if (set !== undefined) return await recordSet(address, name, set);
  if (jobs !== undefined) return await recordJob(address, name, jobs);
  return await record(address, name, SCENARIOS[name] as Scenario);
}

/** Records a scenario of a runner. */
async function record(
  address: string,
  name: string,
  scenario: Scenario,
): Promise<Map<string, string>> {
  const [compute, ci] = [new FakeCompute(), new FakeCiServer()];
  prepare(name, { compute, ci });
  const world = await holdfastWorld(address, { compute, ciServers: ci });
  try {
    const run = await world.start(scenario.input, `runner-${name}`);
    const stage: Stage = { compute, ci, run };
    await scenario.play(stage);
    const files = new Map<string, string>();
    if (scenario.ends === 'cancelled') {
      await assertCancelled(run.result());
    } else {
      const result = await run.result();
      assert.partialDeepStrictEqual(result, scenario.ends, `${name} did not end as expected`);
      assert.equal(
        result.deregistrationWorkflowId !== undefined,
        scenario.deregistration !== undefined,
        `${name}: hand-off to deregistration`,
      );
      if (result.deregistrationWorkflowId !== undefined) {
        scenario.deregistration?.(stage, result.runnerName);
        await world.client.workflow.getHandle(result.deregistrationWorkflowId).result();
        for (const [, history] of await historiesOf(world.client, result.deregistrationWorkflowId))
          files.set(`${name}.deregistration.json`, history);
      }
    }
    if (scenario.rerun === true) {
      const { runnerName } = await run.status();
      const workflowId = rerunWorkflowId(runnerName);
      await world.client.workflow.getHandle(workflowId).result();
      for (const [, history] of await historiesOf(world.client, workflowId))
        files.set(`${name}.rerun.json`, history);
    }
    await addRuns(files, world.client, run.handle.workflowId, name, scenario.runs);
    return files;
  } finally {
    await world.close();
  }
}

/** Records a scenario of a job. */
async function recordJob(
  address: string,
  name: string,
  { play, ends, steps = [], runs }: JobScenario,
): Promise<Map<string, string>> {
  const [compute, ci] = [new FakeCompute(), new FakeCiServer()];
  const world = await holdfastWorld(address, { compute, ciServers: ci });
  try {
    const handle = await play({ world, compute, ci }, name);
    if (ends === 'cancelled') await assertCancelled(handle.result());
    else
      assert.partialDeepStrictEqual(await handle.result(), ends, `${name} did not end as expected`);
    const files = new Map<string, string>();
    await addRuns(files, world.client, handle.workflowId, name, runs);
    for (const step of steps)
      await addRuns(files, world.client, `${handle.workflowId}-${step}`, `${name}.${step}`);
    return files;
  } finally {
    await world.close();
  }
}

/** Records a scenario of a set, of a command to a set, or of a sweep. */
async function recordSet(
  address: string,
  name: string,
  { play, records = { '': setWorkflowId }, runs }: SetScenario,
): Promise<Map<string, string>> {
  const [compute, ci] = [new FakeCompute(), new FakeCiServer()];
  const world = await holdfastWorld(address, { compute, ciServers: ci });
  try {
    await play({ world, compute, ci }, name);
    const files = new Map<string, string>();
    for (const [more, idOf] of Object.entries(records))
      await addRuns(files, world.client, idOf(name), `${name}${more}`, more === '' ? runs : 1);
    return files;
  } finally {
    await world.close();
  }
}

async function assertCancelled(result: Promise<unknown>): Promise<void> {
  await assert.rejects(
    result,
    (error) => error instanceof WorkflowFailedError && error.cause instanceof CancelledFailure,
  );
}

async function addRuns(
  files: Map<string, string>,
  client: Client,
  workflowId: string,
  name: string,
  expected = 1,
): Promise<void> {
  const runs = await historiesOf(client, workflowId);
  assert.equal(runs.length, expected, `${name}: number of runs`);
  for (const [number, history] of runs)
    files.set(number === 1 ? `${name}.json` : `${name}.${number}.json`, history);
}

/** Returns the histories of all runs of a workflow in their order, with their numbers. */
async function historiesOf(
  client: Client,
  workflowId: string,
): Promise<[number: number, history: string][]> {
  const { raw } = await client.workflow.getHandle(workflowId).describe();
  const histories: [number, string][] = [];
  let runId: string | undefined = raw.workflowExecutionInfo?.firstRunId ?? undefined;
  while (runId !== undefined) {
    const { events } = historyToJson(
      await client.workflow.getHandle(workflowId, runId).fetchHistory(),
    ) as { events: RecordedEvent[] };
    histories.push([histories.length + 1, presentable(events)]);
    runId = events.at(-1)?.workflowExecutionContinuedAsNewEventAttributes?.newExecutionRunId;
  }
  return histories;
}

/**
 * Returns the history with one event per line, without details of this machine.
 * @throws AssertionError if such a detail remains
 */
function presentable(events: readonly RecordedEvent[]): string {
  const lines = events.map((event) =>
    JSON.stringify(event, (key, value: unknown) => (key === 'stackTrace' ? undefined : value)),
  );
  const text = `{"events":[\n${lines.join(',\n')}\n]}\n`.replaceAll(
    `${process.pid}@${hostname()}`,
    'recorder',
  );
  for (const trace of [hostname(), PROJECT])
    assert(!text.includes(trace), `the history contains ${trace}`);
  return text;
}

await runCommand(
  createCommand(
    'npm run record-histories --',
    'Records the histories of scenarios for the replay tests.',
  )
    .addArgument(new Argument('[scenarios...]', 'scenarios (default: all)').choices(NAMES))
    .action(main),
);
