#!/usr/bin/env node
/** `npm run demo`: five runners' lives on a real Temporal server and a simulated GitHub, on this machine alone. */
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { join, resolve } from 'node:path';
import { Command } from 'commander';
import { SUPERVISOR_IMAGE } from '../tools/lab/images/definitions.ts';
import { down, up, type LabState } from '../tools/lab/lab.ts';
import { table } from '../cli/shared/table.ts';
import { drawWhile } from './liveTable.ts';
import { ScenarioRun, runScenario, scenariosOn, type DemoRunner } from './scenarios.ts';
import { DemoEnvironment } from './environment.ts';
import { kubernetesTarget, processTarget, type Target } from './target.ts';
import { errorMessage } from '../core/domain/errorMessage.ts';

interface DemoOptions {
  exit?: true;
  json?: true;
  kubernetes?: true;
  gitea?: true;
  image: string;
  hostAddress?: string;
  supervisorImage?: string;
  namespace: string;
  stateDir: string;
}

interface DemoResult {
  readonly runners: Omit<DemoRunner, 'description' | 'failure'>[];
  readonly leaks: { compute: number; registrations: number; workflows: number };
  readonly temporalUi: string;
}

const program = new Command('demo')
  .description(
    'Starts Temporal with its UI, a CI server and a worker, and plays five runners’ lives: one succeeds, one is drained while busy,\n' +
      'one is cancelled, one outlives a kill -9 of its worker, one vanishes and is replaced. Stays up until Ctrl-C.',
  )
  .option('--exit', 'end when all have ended: status 0 only if all went as told')
  .option('--json', 'print the result as one JSON object (implies --exit)')
  .option(
    '--kubernetes',
    'run the runners as pods: on the cluster of KUBECONFIG, or else on the lab’s own node (Linux, root)',
  )
  .option(
    '--gitea',
    'play on a real Gitea with its official runner instead of a simulated GitHub; without --kubernetes',
  )
  .option(
    '--image <image>',
    'with --kubernetes: image with Node 24, the simulator in /opt/holdfast/simulator, and its config.sh and run.sh in /home/runner',
    'holdfast.test/runner:1',
  )
  .option(
    '--supervisor-image <image>',
    'with --kubernetes and KUBECONFIG: image with the supervisor in /opt/holdfast; without it runners run bare',
  )
  .option('--namespace <namespace>', 'with --kubernetes', 'default')
  .option(
    '--host-address <address>',
    'with --kubernetes and KUBECONFIG: address of this machine that pods reach',
  )
  .option('--state-dir <folder>', 'data, logs and process records', '.holdfast/demo');

process.exitCode = await main(program.parse().opts<DemoOptions>());

async function main(options: DemoOptions): Promise<number> {
  const say = (line: string): void => void process.stderr.write(`${line}\n`);
  if (options.gitea === true && options.kubernetes === true) {
    say('demo: --gitea plays on local processes: leave out --kubernetes');
    return 2;
  }
  const stopped = new AbortController();
  const stop = (signal: NodeJS.Signals): void => {
    if (stopped.signal.aborted) process.exit(130);
    stopped.abort(signal);
  };
  process.on('SIGINT', stop);
  process.on('SIGTERM', stop);

  const stateDir = resolve(options.stateDir);
  const labDir = join(stateDir, 'lab');
  let stage: DemoEnvironment | undefined;
  try {
    const lab = await startLab(options, labDir, say);
    stage = await DemoEnvironment.set({
      stateDir,
      target: await targetOf(options, lab, stateDir),
      gitea: options.gitea === true ? lab.gitea : undefined,
      temporalAddress: lab.temporal?.address ?? '',
      taskQueue: `demo-${randomBytes(3).toString('hex')}`,
    });
    return await playOn(stage, lab.temporal?.uiUrl ?? '', options, stopped.signal, say);
  } catch (error) {
    say(`demo: ${errorMessage(error)}`);
    return 1;
  } finally {
    await stage?.close();
    await down({ stateDir: labDir });
  }
}

async function startLab(
  options: DemoOptions,
  stateDir: string,
  say: (line: string) => void,
): Promise<LabState> {
  const ownNode = options.kubernetes === true && process.env['KUBECONFIG'] === undefined;
  return await up({
    stateDir,
    temporal: true,
    kubernetes: ownNode,
    gitea: options.gitea === true,
    ...(ownNode ? { nodes: 'kubelet' as const } : {}),
    progress: say,
  });
}

/** Plays all scenarios. @returns the exit status */
async function playOn(
  stage: DemoEnvironment,
  uiUrl: string,
  options: DemoOptions,
  stopped: AbortSignal,
  say: (line: string) => void,
): Promise<number> {
  say(`Temporal UI: ${uiUrl}`);
  say('starting the worker …');
  await stage.startWorker();
  const played = await playAll(stage, options, stopped).catch(async (error: unknown) => {
    await abandon(stage, say);
    if (!stopped.aborted) throw error;
  });
  if (played === undefined) return 130;
  const wrong = await report(stage, played, uiUrl, options);
  if (options.exit !== true && options.json !== true) {
    say(
      `\nEverything stays up for a look: ${uiUrl}/namespaces/default/workflows  (Ctrl-C ends it)`,
    );
    if (!stopped.aborted) await once(stopped, 'abort');
  }
  return wrong === 0 ? 0 : 1;
}

async function targetOf(options: DemoOptions, lab: LabState, stateDir: string): Promise<Target> {
  if (options.kubernetes !== true) return processTarget(stateDir);
  const kubeconfig = lab.kubernetes?.kubeconfig ?? process.env['KUBECONFIG'] ?? '';
  const hostAddress = options.hostAddress ?? lab.hostAddress;
  if (hostAddress === undefined)
    throw new Error(
      '--host-address is missing: the address of this machine that the pods of your cluster reach',
    );
  // The lab's own image of it; of somebody's cluster nobody knows which images it has.
  const supervisorImage =
    options.supervisorImage ?? (lab.kubernetes === undefined ? undefined : SUPERVISOR_IMAGE);
  return await kubernetesTarget({
    kubeconfig,
    image: options.image,
    hostAddress,
    namespace: options.namespace,
    ...(supervisorImage === undefined ? {} : { supervisorImage }),
  });
}

async function playAll(
  stage: DemoEnvironment,
  options: DemoOptions,
  signal: AbortSignal,
): Promise<DemoRunner[]> {
  const run = randomBytes(2).toString('hex');
  const over = new AbortController();
  const ends = AbortSignal.any([over.signal, signal]);
  const acts = scenariosOn(stage.ciServer.kind).map(
    (scenario) => new ScenarioRun(stage, scenario, run, ends),
  );
  await Promise.all(acts.map(async (act) => await act.start()));
  const drawing = drawWhile(acts, ends, options.json === true ? process.stderr : process.stdout);
  const plays = acts.map(runScenario);
  try {
    return await Promise.all(plays);
  } finally {
    over.abort();
    await Promise.allSettled([...plays, drawing]);
  }
}

/** @returns how many things did not go as told */
async function report(
  stage: DemoEnvironment,
  played: readonly DemoRunner[],
  temporalUi: string,
  options: DemoOptions,
): Promise<number> {
  const [compute, workflows] = await Promise.all([
    stage.target.remainingObjects(),
    stage.runningWorkflows(),
  ]);
  const names = await stage.ciServer.registrations();
  const registrations = names.map((name) => `registration ${name}`);
  const leaked = [...compute, ...registrations, ...workflows.map((id) => `workflow ${id}`)];
  const wrong = played.flatMap((runner) => runner.failure.map((what) => `${runner.id}: ${what}`));
  const result: DemoResult = {
    runners: played.map(({ description: _story, failure: _wrong, ...runner }) => runner),
    leaks: {
      compute: compute.length,
      registrations: registrations.length,
      workflows: workflows.length,
    },
    temporalUi,
  };
  if (options.json === true) process.stdout.write(`${JSON.stringify(result)}\n`);
  else {
    const rows = played.map((runner) => [
      runner.failure.length === 0 ? 'ok' : 'WRONG',
      runner.description,
      `${runner.outcome}${runner.cause === undefined ? '' : `/${runner.cause}`}`,
    ]);
    process.stdout.write(
      `\n${table(['', 'WHAT WAS TOLD', 'WHAT BECAME OF IT'], rows)}\n\nworkers used: ${stage.workers} (one was killed with SIGKILL)\n`,
    );
    process.stdout.write(
      `leaked: ${leaked.length === 0 ? 'nothing (no process, no pod, no Secret, no registration, no workflow)' : leaked.join(', ')}\n`,
    );
  }
  for (const line of wrong) process.stderr.write(`demo: ${line}\n`);
  return wrong.length + leaked.length;
}

/** Interrupted in the middle: what was started is not left behind. */
async function abandon(stage: DemoEnvironment, say: (line: string) => void): Promise<void> {
  say('stopping: the runners are cancelled first …');
  const ids = await stage.runningWorkflows();
  await Promise.all(
    ids.map(
      async (id) =>
        await stage.client.workflow
          .getHandle(id)
          .signal('cancel', { mode: 'force', reason: 'demo stopped' }),
    ),
  );
  for (const deadline = Date.now() + 15_000; Date.now() < deadline;) {
    if ((await stage.runningWorkflows()).length === 0) return;
    await new Promise((wake) => setTimeout(wake, 200));
  }
  const remaining = await stage.target.remainingObjects();
  if (remaining.length > 0) say(`left behind: ${remaining.join(', ')}`);
}
