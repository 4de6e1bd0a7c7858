/**
 * Builds the images and runs docker-compose.yml with both profiles, on a Docker engine of its own and
 * the lab's kubelet: `npm run compose-check` (docs/testing.md).
 */
import { join } from 'node:path';
import { Argument } from 'commander';
import { down, up } from '../../../tools/lab/lab.ts';
import { createCommand, runCommand } from '../../../tools/shared/commandLine.ts';
import { makeBaseImages } from './baseImages.ts';
import { Engine, PROJECT } from './engine.ts';
import { buildImages, checkImages } from './images.ts';
import { startNoNames } from './noNames.ts';
import { checkProfile, PROFILES } from './profiles.ts';
import { progress } from './tell.ts';

const FOLDER = join(PROJECT, '.holdfast', 'compose');

async function run(
  names: readonly string[],
  { images }: { readonly images?: true },
): Promise<void> {
  await withEngine(undefined, async (engine) => {
    await makeBaseImages(engine, FOLDER);
    await buildImages(engine);
    await checkImages(engine);
  });
  const profiles = PROFILES.filter((name) => names.length === 0 || names.includes(name));
  if (images !== true) await checkProfiles(profiles);
  progress('done');
}

async function withEngine(
  dns: string | undefined,
  work: (engine: Engine) => Promise<void>,
): Promise<void> {
  const engine = await Engine.start(join(FOLDER, 'engine'), dns);
  try {
    await work(engine);
  } finally {
    await engine.stop();
  }
}

async function checkProfiles(profiles: readonly string[]): Promise<void> {
  const stateDir = join(FOLDER, 'lab');
  const lab = await up({ stateDir, temporal: false, nodes: 'kubelet', progress });
  try {
    const { hostAddress: dns = '' } = lab;
    const names = await startNoNames(dns);
    await withEngine(dns, async (engine) => {
      for (const profile of profiles) await checkProfile(engine, lab, profile, FOLDER);
    }).finally(() => names.stop());
  } finally {
    await down({ stateDir });
  }
}

await runCommand(
  createCommand(
    'npm run compose-check --',
    'Builds the images and runs docker-compose.yml on a Docker engine of its own and the kubelet of the lab. Needs Linux, root, docker.io, debootstrap and the requirements of the kubelet.',
  )
    .addArgument(new Argument('[profiles...]', 'profiles to run (default: all)').choices(PROFILES))
    .option('--images', 'build and check the images only')
    .action(run),
);
