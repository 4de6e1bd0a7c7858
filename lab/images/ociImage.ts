import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { mkdir, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { promisify } from 'node:util';

export interface ImageConfig {
  readonly entrypoint?: readonly string[];
  readonly command?: readonly string[];
  readonly workingDir?: string;
}

/**
 * Packs a root file system as an image archive of one layer (https://github.com/opencontainers/image-spec, image layout) that
 * `ctr images import` takes. No container engine involved.
 * @param work an empty folder for what is in between
 */
export async function packImage(root: string, reference: string, config: ImageConfig, work: string, archive: string): Promise<void> {
  const layout = join(work, 'layout');
  const blobs = join(layout, 'blobs', 'sha256');
  await mkdir(blobs, { recursive: true });

  const layerFile = join(work, 'layer.tar');
  // Nothing of the build's time or user: equal content gives an equal digest.
  await promisify(execFile)('tar', ['--sort=name', '--mtime=@0', '--owner=0', '--group=0', '--numeric-owner', '-C', root, '-cf', layerFile, '.']);
  const hash = createHash('sha256');
  await pipeline(createReadStream(layerFile), hash);
  const layer = { digest: `sha256:${hash.digest('hex')}`, size: (await stat(layerFile)).size };
  await rename(layerFile, join(blobs, layer.digest.slice('sha256:'.length)));

  const put = async (value: unknown): Promise<{ digest: string; size: number }> => {
    const text = JSON.stringify(value);
    const digest = createHash('sha256').update(text).digest('hex');
    await writeFile(join(blobs, digest), text);
    return { digest: `sha256:${digest}`, size: Buffer.byteLength(text) };
  };
  const architecture = process.arch === 'x64' ? 'amd64' : process.arch;
  const imageConfig = await put({
    architecture,
    os: 'linux',
    config: {
      Env: ['PATH=/usr/local/bin:/usr/bin:/bin:/sbin'],
      ...(config.entrypoint === undefined ? {} : { Entrypoint: config.entrypoint }),
      ...(config.command === undefined ? {} : { Cmd: config.command }),
      WorkingDir: config.workingDir ?? '/',
    },
    rootfs: { type: 'layers', diff_ids: [layer.digest] },
  });
  const manifest = await put({
    schemaVersion: 2,
    mediaType: 'application/vnd.oci.image.manifest.v1+json',
    config: { mediaType: 'application/vnd.oci.image.config.v1+json', ...imageConfig },
    layers: [{ mediaType: 'application/vnd.oci.image.layer.v1.tar', ...layer }],
  });
  const index = {
    schemaVersion: 2,
    manifests: [
      {
        mediaType: 'application/vnd.oci.image.manifest.v1+json',
        ...manifest,
        platform: { architecture, os: 'linux' },
        annotations: { 'io.containerd.image.name': reference },
      },
    ],
  };
  await writeFile(join(layout, 'index.json'), JSON.stringify(index));
  await writeFile(join(layout, 'oci-layout'), JSON.stringify({ imageLayoutVersion: '1.0.0' }));
  await promisify(execFile)('tar', ['-C', layout, '-cf', archive, '.']);
  await rm(layout, { recursive: true, force: true });
}
