/** Marks of a sweep without a worker, stored in a config map of the installation. */
import type { V1ConfigMap } from '@kubernetes/client-node';
import { z } from 'zod';
import type { SweepMark } from '../../../core/contract/index.ts';
import type { ApiObjects } from './apiObjects.ts';
import type { ApiServer } from './apiServer.ts';
import { isNotFound, toComputeError } from './errors.ts';
import { installationLabels } from './metadata.ts';

const marks = z.array(
  z.object({
    kind: z.enum(['orphaned_registration', 'stuck_runner', 'unresponsive_runner', 'orphaned_step']),
    key: z.string(),
    since: z.string(),
    unpolledSince: z.string().exactOptional(),
  }),
);

/** The config map with the marks of one installation. It is created with the first marks. */
export class SweepMarks {
  readonly #api: ApiServer;
  readonly #objects: ApiObjects;
  readonly #installation: string;
  readonly #name: string;

  constructor(api: ApiServer, objects: ApiObjects, installation: string) {
    this.#api = api;
    this.#objects = objects;
    this.#installation = installation;
    this.#name = `holdfast-sweep-${installation.toLowerCase().replaceAll('_', '-')}`;
  }

  /** @throws ComputeError */
  async load(): Promise<SweepMark[]> {
    const kept = await this.#objects.get<V1ConfigMap>('configmaps', undefined, this.#name);
    const text = kept?.data?.['marks'];
    return text === undefined ? [] : marks.parse(JSON.parse(text));
  }

  /** @throws ComputeError */
  async save(kept: readonly SweepMark[]): Promise<void> {
    const data = { marks: JSON.stringify(kept) };
    try {
      await this.#api.call({
        verb: 'patch',
        resource: 'configmaps',
        path: this.#objects.pathOf('configmaps', undefined, this.#name),
        body: { data },
      });
    } catch (error) {
      if (!isNotFound(error, this.#name))
        throw toComputeError(error, `keep the sweep's marks in configmap ${this.#name}`);
      await this.#create(data);
    }
  }

  async #create(data: Record<string, string>): Promise<void> {
    try {
      await this.#api.call({
        verb: 'create',
        resource: 'configmaps',
        path: this.#objects.pathOf('configmaps', undefined),
        body: {
          apiVersion: 'v1',
          kind: 'ConfigMap',
          metadata: { name: this.#name, labels: installationLabels(this.#installation) },
          data,
        },
      });
    } catch (error) {
      throw toComputeError(error, `create configmap ${this.#name} for the sweep's marks`);
    }
  }
}
