import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Lab } from '../component.ts';
import { containerdFolder, containerdSocket } from '../nodeFiles.ts';
import { readJson } from '../store.ts';
import { IMAGES, type ImageDefinition } from './definitions.ts';
import { packImage } from './ociImage.ts';

/** Which content of each image the node has: `<reference>` → fingerprint. */
const ledgerPath = (lab: Lab): string => join(containerdFolder(lab), 'images.json');

/** The images that the node lacks, or has in an older content (the simulator's runner was edited). */
export async function staleImages(lab: Lab): Promise<ImageDefinition[]> {
  const ledger = (await readJson<Record<string, string>>(ledgerPath(lab))) ?? {};
  const fingerprints = await Promise.all(IMAGES.map((image) => image.fingerprint()));
  return IMAGES.filter((image, index) => ledger[image.reference] !== fingerprints[index]);
}

/** Builds these images and puts them into the node's containerd. */
export async function importImages(lab: Lab, images: readonly ImageDefinition[]): Promise<void> {
  const { ctr } = lab.binaries;
  if (ctr === undefined) throw new Error('ctr was not resolved');
  for (const image of images) {
    const started = performance.now();
    const fingerprint = await image.fingerprint(); // before the build: what changes meanwhile is built again
    const work = await mkdtemp(join(containerdFolder(lab), 'image-'));
    try {
      const root = join(work, 'root');
      await mkdir(root);
      await image.fill(root);
      const archive = join(work, 'image.tar');
      await packImage(root, image.reference, image.config, work, archive);
      const snapshotter = lab.record.snapshotter ?? 'overlayfs';
      await promisify(execFile)(ctr, ['--address', containerdSocket(lab), '--namespace', 'k8s.io', 'images', 'import', '--snapshotter', snapshotter, archive]);
    } finally {
      await rm(work, { recursive: true, force: true });
    }
    const ledger = (await readJson<Record<string, string>>(ledgerPath(lab))) ?? {};
    await writeFile(ledgerPath(lab), JSON.stringify({ ...ledger, [image.reference]: fingerprint }));
    lab.progress(`image ${image.reference}: ready in ${((performance.now() - started) / 1000).toFixed(1)} s`);
  }
}
