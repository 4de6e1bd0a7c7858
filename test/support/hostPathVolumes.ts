import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestNamespace } from './pods.ts';
import type { VolumeClaim } from '../../core/contract/index.ts';

/** Volumes on the node for claims called `state`: the lab has no provisioner. Each has a storage class of its own, so that only its claim gets it. */
export class HostPathVolumes {
  readonly #core: TestNamespace['core'];
  readonly #namespace: string;
  readonly #made: { name: string; folder: string }[] = [];

  constructor({ core, name }: TestNamespace) {
    this.#core = core;
    this.#namespace = name;
  }

  /** A claim that a new volume is waiting for, and the volume's folder on this machine. */
  async stateClaim(): Promise<{ claim: VolumeClaim; folder: string }> {
    const { name, folder } = await this.#volume('ReadWriteOnce');
    return {
      claim: { name: 'state', mountPath: '/state', storage: '1Mi', storageClass: name },
      folder,
    };
  }

  /** Makes a claim for many pods. @returns its volume's folder on this machine */
  async sharedClaim(claim: string): Promise<string> {
    const { name, folder } = await this.#volume('ReadWriteMany');
    const spec = {
      storageClassName: name,
      accessModes: ['ReadWriteMany'],
      resources: { requests: { storage: '1Mi' } },
    };
    await this.#core.createNamespacedPersistentVolumeClaim({
      namespace: this.#namespace,
      body: { metadata: { name: claim }, spec },
    });
    return folder;
  }

  async #volume(mode: string): Promise<{ name: string; folder: string }> {
    const made = {
      name: `holdfast-test-${randomUUID().slice(0, 8)}`,
      folder: await mkdtemp(join(tmpdir(), 'hf-state-')),
    };
    const { name, folder } = made;
    const spec = {
      storageClassName: name,
      capacity: { storage: '1Mi' },
      accessModes: [mode],
      persistentVolumeReclaimPolicy: 'Retain',
      hostPath: { path: folder },
    };
    await this.#core.createPersistentVolume({ body: { metadata: { name }, spec } });
    this.#made.push(made);
    return made;
  }

  async remove(): Promise<void> {
    for (const { name, folder } of this.#made) {
      await this.#core.deletePersistentVolume({ name });
      await rm(folder, { recursive: true, force: true });
    }
  }
}
