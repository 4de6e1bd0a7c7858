import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Lab } from '../component.ts';
import { containerdFolder, containerdSocket } from '../nodeFiles.ts';
import { readJson } from '../store.ts';
import {
  fingerprintOfImage,
  IMAGES,
  type ImageDefinition,
  type LayerDefinition,
} from './definitions.ts';
import { ImageLayout } from './ociImage.ts';

/** Which content of each image the node has: `<reference>` → fingerprint. */
const ledgerPath = (lab: Lab): string => join(containerdFolder(lab), 'images.json');

/** Returns the images that the node lacks or has with outdated content. */
export async function staleImages(
  lab: Lab,
  images: readonly ImageDefinition[] = IMAGES,
): Promise<ImageDefinition[]> {
  const ledger = (await readJson<Record<string, string>>(ledgerPath(lab))) ?? {};
  const fingerprints = await Promise.all(images.map(fingerprintOfImage));
  return images.filter((image, index) => ledger[image.reference] !== fingerprints[index]);
}

/**
 * Builds the images and imports them into the node's containerd together, so that shared layers are
 * built and read once.
 */
export async function importImages(lab: Lab, images: readonly ImageDefinition[]): Promise<void> {
  const { ctr } = lab.binaries;
  if (ctr === undefined) throw new Error('ctr was not resolved');
  const started = performance.now();
  // Computed before the build: a change during the build causes another build.
  const fingerprints = Object.fromEntries(
    await Promise.all(
      images.map(async (image) => [image.reference, await fingerprintOfImage(image)]),
    ),
  );
  const work = await mkdtemp(join(containerdFolder(lab), 'image-'));
  try {
    const archive = join(work, 'images.tar');
    await packImages(images, work, archive);
    const snapshotter = lab.record.snapshotter ?? 'overlayfs';
    await promisify(execFile)(ctr, [
      '--address',
      containerdSocket(lab),
      '--namespace',
      'k8s.io',
      'images',
      'import',
      '--snapshotter',
      snapshotter,
      archive,
    ]);
  } finally {
    await rm(work, { recursive: true, force: true });
  }
  const ledger = (await readJson<Record<string, string>>(ledgerPath(lab))) ?? {};
  await writeFile(ledgerPath(lab), JSON.stringify({ ...ledger, ...fingerprints }));
  lab.progress(
    `images ${images.map(({ reference }) => reference).join(', ')}: ready in ${((performance.now() - started) / 1000).toFixed(1)} s`,
  );
}

/** @param work - empty folder for intermediate files */
async function packImages(
  images: readonly ImageDefinition[],
  work: string,
  archive: string,
): Promise<void> {
  const layout = await ImageLayout.create(join(work, 'layout'));
  const layers = new Map<LayerDefinition, Awaited<ReturnType<ImageLayout['addLayer']>>>();
  for (const layer of new Set(images.flatMap((image) => image.layers))) {
    const root = join(work, `root-${layers.size}`);
    await mkdir(root);
    await layer.fill(root);
    layers.set(layer, await layout.addLayer(root));
  }
  for (const image of images) {
    await layout.addImage(
      image.reference,
      image.config,
      image.layers.flatMap((layer) => layers.get(layer) ?? []),
    );
  }
  await layout.pack(archive);
}
