import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestNamespace } from './pods.ts';
import type { VolumeClaim } from '../../core/contract/index.ts';

/**
 * Volumes on the node for claims with the name `state`: the lab has no provisioner. Each has a
 * storage class of its own, so that only its claim is bound to it.
 */
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

  /** Creates volumes on the node that support `fsGroup`, which those of a `hostPath` do not. */
  async localVolumes(storageClass: string, count: number): Promise<void> {
    const onAnyNode = [
      { matchExpressions: [{ key: 'kubernetes.io/hostname', operator: 'Exists' }] },
    ];
    for (let index = 0; index < count; index++) {
      const folder = await mkdtemp(join(tmpdir(), 'hf-local-'));
      const name = `${storageClass}-${index}`;
      await this.#create(name, folder, {
        storageClassName: storageClass,
        accessModes: ['ReadWriteOnce'],
        local: { path: folder },
        nodeAffinity: { required: { nodeSelectorTerms: onAnyNode } },
      });
    }
  }

  /**
   * Creates a claim for several pods.
   * @returns the folder of its volume on this machine
   */
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
    await this.#create(name, folder, {
      storageClassName: name,
      accessModes: [mode],
      hostPath: { path: folder },
    });
    return made;
  }

  async #create(name: string, folder: string, more: object): Promise<void> {
    const spec = {
      ...more,
      capacity: { storage: '1Mi' },
      persistentVolumeReclaimPolicy: 'Retain',
    };
    await this.#core.createPersistentVolume({ body: { metadata: { name }, spec } });
    this.#made.push({ name, folder });
  }

  async remove(): Promise<void> {
    for (const { name, folder } of this.#made) {
      await this.#core.deletePersistentVolume({ name });
      await rm(folder, { recursive: true, force: true });
    }
  }
}
