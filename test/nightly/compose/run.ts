/**
 * Builds the images and runs docker-compose.yml, both profiles, on a Docker engine of its own and the lab's kubelet: `npm run compose-check` (Linux, root, docker.io, debootstrap and what
 * the kubelet needs). docs/testing.md says more. `--images` builds and looks at the images alone; `dev` and `full` are the profiles to run, both by default.
 */
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { down, up } from '../../../tools/lab/lab.ts';
import { makeBaseImages } from './baseImages.ts';
import { Engine, PROJECT } from './engine.ts';
import { buildImages, checkImages } from './images.ts';
import { startNoNames } from './noNames.ts';
import { checkProfile, PROFILES } from './profiles.ts';
import { progress } from './tell.ts';

const FOLDER = join(PROJECT, '.holdfast', 'compose');

const { values, positionals } = parseArgs({
  options: { images: { type: 'boolean', default: false } },
  allowPositionals: true,
});
const unknown = positionals.find((name) => !PROFILES.includes(name));
if (unknown !== undefined)
  throw new Error(`docker-compose.yml has no profile ${unknown}: ${PROFILES.join(', ')}`);
const profiles = PROFILES.filter((name) => positionals.length === 0 || positionals.includes(name));

await withEngine(undefined, async (engine) => {
  await makeBaseImages(engine, FOLDER);
  await buildImages(engine);
  await checkImages(engine);
});
if (!values.images) await checkProfiles();
progress('done');

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

async function checkProfiles(): Promise<void> {
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
