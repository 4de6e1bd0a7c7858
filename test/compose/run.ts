/**
 * Builds the images and runs docker-compose.yml, both profiles, on a Docker engine of its own and the lab's kubelet: `npm run compose-check` (Linux, root, docker.io, debootstrap and what
 * the kubelet needs). docs/testing.md says more. `--images` builds and looks at the images alone.
 */
import assert from 'node:assert/strict';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { KubeConfig } from '@kubernetes/client-node';
import { RUNNER_IMAGE } from '../../tools/lab/images/definitions.ts';
import { down, up, type LabState } from '../../tools/lab/lab.ts';
import { startSimulator } from '../../tools/simulator/simulator.ts';
import { createTestNamespace } from '../support/pods.ts';
import { Relay } from '../support/relay.ts';
import { until } from '../support/until.ts';
import { makeBaseImages } from './baseImages.ts';
import { Engine, PROJECT } from './engine.ts';

const FOLDER = join(PROJECT, '.holdfast', 'compose');
const IMAGES = { worker: 'holdfast-worker:0.1.0', supervisor: 'holdfast-supervisor:0.1.0', runner: 'holdfast-runner:0.1.0' } as const;
const say = (line: string): void => void process.stdout.write(`${line}\n`);

const engine = await Engine.start(join(FOLDER, 'engine'));
try {
  await makeBaseImages(engine, FOLDER);
  for (const [name, image] of Object.entries(IMAGES)) await buildImage(name, image);
  await checkImages();
  if (!process.argv.includes('--images')) await checkProfiles();
} finally {
  await engine.stop();
}

async function buildImage(name: string, image: string): Promise<void> {
  const startedAt = Date.now();
  // What a container needs of the network it has from the machine: the engine has none of its own.
  await engine.docker('build', '--network', 'host', '--file', `deploy/images/${name}.Dockerfile`, '--tag', image, '.');
  const { Config, Size } = JSON.parse(await engine.docker('image', 'inspect', '--format', '{{json .}}', image)) as { Config: { User: string }; Size: number };
  assert.match(Config.User, /^[1-9]\d*$/, `${image} runs as root`);
  say(`${image}: ${Math.round(Size / 1e6)} MB, as user ${Config.User}; built in ${Math.round((Date.now() - startedAt) / 1_000)} s`);
}

/** What they are for, as nobody in particular and on a root that is read-only. */
async function checkImages(): Promise<void> {
  const strict = ['run', '--rm', '--network', 'none', '--read-only', '--cap-drop', 'ALL', '--security-opt', 'no-new-privileges'];
  assert.match(await engine.docker(...strict, IMAGES.worker, 'holdfast', '--version'), /^\d+\.\d+\.\d+$/m);
  // As a runner's pod does: the supervisor's folder, copied to a volume and run from there, in an image that has nothing.
  for (const image of [IMAGES.worker, IMAGES.supervisor]) {
    const script = 'cp -R /opt/holdfast/. /there && /there/tini -s -- /there/ld.so --library-path /there/lib /there/node /there/supervisor.mjs -- sh -c "echo ran as $(id -u)"';
    assert.match(await engine.docker(...strict, '--tmpfs', '/there:exec,mode=1777', '--entrypoint', 'sh', image, '-c', script), /ran as 1000/);
  }
  const registered = await engine.docker(...strict, '--tmpfs', '/tmp', '--entrypoint', 'sh', IMAGES.runner, '-c', 'id -u; ls /home/runner/run.sh /opt/holdfast/supervisor.mjs /usr/local/bin/holdfast-runner');
  assert.match(registered, /^1001\n/);
  say('images: run as nobody in particular, without capabilities, on a read-only root');
}

async function checkProfiles(): Promise<void> {
  const stateDir = join(FOLDER, 'lab');
  const lab = await up({ stateDir, temporal: false, nodes: 'kubelet', progress: (line) => process.stderr.write(`[lab] ${line}\n`) });
  try {
    for (const profile of ['dev', 'full']) await checkProfile(lab, profile);
  } finally {
    await down({ stateDir });
  }
}

async function checkProfile(lab: LabState, profile: string): Promise<void> {
  const { hostAddress: host = '', kubernetes } = lab;
  const startedAt = Date.now();
  const github = await startSimulator({ host });
  const relay = await Relay.open(host, new URL(kubernetes?.server ?? ''));
  const namespace = await createTestNamespace(kubernetes?.kubeconfig ?? '', `compose-${profile}`);
  const kubeconfig = join(FOLDER, 'kubeconfig');
  await mkdir(FOLDER, { recursive: true });
  await writeFile(kubeconfig, kubeconfigAt(kubernetes?.kubeconfig ?? '', `https://${host}:${relay.port}`));
  const env = { KUBECONFIG: kubeconfig, HOLDFAST_GITHUB_TOKEN: 'ghp_simulator', HOLDFAST_GITHUB_URL: github.url, HOLDFAST_KUBERNETES_NAMESPACE: namespace.name, HOLDFAST_RUNNER_IMAGE: RUNNER_IMAGE };
  const compose = async (...args: string[]): Promise<string> => await engine.compose(env, '--profile', profile, ...args);
  try {
    await compose('up', '--detach', '--no-build', '--pull', 'never');
    await until(`profile ${profile} to be healthy`, async () => await isUp(compose), () => '', 120_000);
    const upMs = Date.now() - startedAt;
    const doctor = await compose('exec', '-T', 'worker', 'holdfast', 'doctor');
    assert.doesNotMatch(doctor, /^(warning|error) /m, doctor);
    const { id } = github.queueJob({ repo: 'acme/app', labels: [profile], command: 'echo from the job' });
    const told = await compose('exec', '-T', 'worker', 'holdfast', 'run', '--org', 'acme', '--labels', profile);
    assert.deepEqual([github.job(id)?.conclusion, github.runners().length], ['success', 0], told);
    assert.match(await (await fetch('http://127.0.0.1:8233/')).text(), /<html/i);
    say(`profile ${profile}: healthy in ${Math.round(upMs / 1_000)} s; doctor finds nothing; a job ran on a runner in a pod`);
  } catch (error) {
    process.stderr.write(await compose('ps', '--all').catch(String));
    process.stderr.write(await compose('logs', '--tail', '30').catch(String));
    throw error;
  } finally {
    await compose('down', '--volumes', '--timeout', '20');
    await namespace.remove();
    relay.close();
    await github.stop();
  }
}

/** All that has a check is healthy, and all one-shot services have succeeded. */
async function isUp(compose: (...args: string[]) => Promise<string>): Promise<boolean> {
  const services = (await compose('ps', '--all', '--format', 'json')).split('\n').filter((line) => line !== '').map((line) => JSON.parse(line) as { Service: string; State: string; Health: string; ExitCode: number });
  return services.length > 1 && services.every(({ State, Health, ExitCode }) => (State === 'exited' ? ExitCode === 0 : State === 'running' && Health === 'healthy'));
}

/** The same cluster at an address that containers reach, by a name of its certificate's. */
function kubeconfigAt(path: string, server: string): string {
  const config = new KubeConfig();
  config.loadFromFile(path);
  const cluster = { ...config.getCurrentCluster()!, server, tlsServerName: 'kubernetes.default.svc' };
  config.clusters = [cluster];
  return config.exportConfig();
}
