import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { mkdir, rename, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { promisify } from 'node:util';

export interface ImageConfig {
  readonly entrypoint?: readonly string[];
  readonly command?: readonly string[];
  readonly workingDir?: string;
  /** @default root */
  readonly user?: string;
}

/** A blob of an image: https://github.com/opencontainers/image-spec/blob/main/descriptor.md */
interface Blob {
  readonly digest: string;
  readonly size: number;
}

/**
 * An image layout (https://github.com/opencontainers/image-spec/blob/main/image-layout.md) that is
 * being built, without a container engine.
 */
export class ImageLayout {
  readonly #folder: string;
  readonly #manifests: object[] = [];
  readonly #architecture = process.arch === 'x64' ? 'amd64' : process.arch;

  private constructor(folder: string) {
    this.#folder = folder;
  }

  /** @param folder is created */
  static async create(folder: string): Promise<ImageLayout> {
    await mkdir(join(folder, 'blobs', 'sha256'), { recursive: true });
    return new ImageLayout(folder);
  }

  /** Adds the content of `root` as a layer. */
  async addLayer(root: string): Promise<Blob> {
    const file = join(this.#folder, 'layer.tar');
    // Without build time and user, so that the same content has the same digest.
    await promisify(execFile)('tar', [
      '--sort=name',
      '--mtime=@0',
      '--owner=0',
      '--group=0',
      '--numeric-owner',
      '-C',
      root,
      '-cf',
      file,
      '.',
    ]);
    const hash = createHash('sha256');
    await pipeline(createReadStream(file), hash);
    const digest = hash.digest('hex');
    const { size } = await stat(file);
    await rename(file, this.#path(digest));
    return { digest: `sha256:${digest}`, size };
  }

  /** @param layers the lowest first */
  async addImage(reference: string, config: ImageConfig, layers: readonly Blob[]): Promise<void> {
    const platform = { architecture: this.#architecture, os: 'linux' };
    const imageConfig = await this.#put({
      ...platform,
      config: {
        Env: ['PATH=/usr/local/bin:/usr/bin:/bin:/sbin'],
        ...(config.entrypoint === undefined ? {} : { Entrypoint: config.entrypoint }),
        ...(config.command === undefined ? {} : { Cmd: config.command }),
        WorkingDir: config.workingDir ?? '/',
        ...(config.user === undefined ? {} : { User: config.user }),
      },
      rootfs: { type: 'layers', diff_ids: layers.map(({ digest }) => digest) },
    });
    const mediaType = 'application/vnd.oci.image.manifest.v1+json';
    const manifest = await this.#put({
      schemaVersion: 2,
      mediaType,
      config: { mediaType: 'application/vnd.oci.image.config.v1+json', ...imageConfig },
      layers: layers.map((layer) => ({
        mediaType: 'application/vnd.oci.image.layer.v1.tar',
        ...layer,
      })),
    });
    this.#manifests.push({
      mediaType,
      ...manifest,
      platform,
      annotations: { 'io.containerd.image.name': reference },
    });
  }

  /** Writes the archive that `ctr images import` takes. */
  async pack(archive: string): Promise<void> {
    await writeFile(
      join(this.#folder, 'index.json'),
      JSON.stringify({ schemaVersion: 2, manifests: this.#manifests }),
    );
    await writeFile(
      join(this.#folder, 'oci-layout'),
      JSON.stringify({ imageLayoutVersion: '1.0.0' }),
    );
    await promisify(execFile)('tar', ['-C', this.#folder, '-cf', archive, '.']);
  }

  async #put(value: unknown): Promise<Blob> {
    const text = JSON.stringify(value);
    const digest = createHash('sha256').update(text).digest('hex');
    await writeFile(this.#path(digest), text);
    return { digest: `sha256:${digest}`, size: Buffer.byteLength(text) };
  }

  #path(digest: string): string {
    return join(this.#folder, 'blobs', 'sha256', digest);
  }
}
