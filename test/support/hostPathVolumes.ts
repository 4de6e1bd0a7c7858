import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestNamespace } from './pods.ts';
import type { VolumeClaim } from '../../core/contract/index.ts';

/** Volumes on the node for claims called `state`: the lab has no provisioner. Each has a storage class of its own, so that only its claim gets it. */
export class HostPathVolumes {
  readonly #core: TestNamespace['core'];
  readonly #made: { name: string; folder: string }[] = [];

  constructor({ core }: TestNamespace) {
    this.#core = core;
  }

  /** A claim that a new volume is waiting for, and the volume's folder on this machine. */
  async stateClaim(): Promise<{ claim: VolumeClaim; folder: string }> {
    const name = `holdfast-test-${randomUUID().slice(0, 8)}`;
    const folder = await mkdtemp(join(tmpdir(), 'hf-state-'));
    const spec = { storageClassName: name, capacity: { storage: '1Mi' }, accessModes: ['ReadWriteOnce'], persistentVolumeReclaimPolicy: 'Retain', hostPath: { path: folder } };
    await this.#core.createPersistentVolume({ body: { metadata: { name }, spec } });
    this.#made.push({ name, folder });
    return { claim: { name: 'state', mountPath: '/state', storage: '1Mi', storageClass: name }, folder };
  }

  async remove(): Promise<void> {
    for (const { name, folder } of this.#made) {
      await this.#core.deletePersistentVolume({ name });
      await rm(folder, { recursive: true, force: true });
    }
  }
}
