import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { port, type Component, type Lab } from '../component.ts';
import { isOk } from '../probe.ts';
import type { S3Access } from '../options.ts';
import { hostAddress } from '../podNetwork.ts';

/** Folder of the objects: buckets are folders, and objects are files. */
const dataFolder = (lab: Lab): string => join(lab.dir, 's3', 'data');
/** Folder of the objects' metadata: not every file system supports extended attributes. */
const metadataFolder = (lab: Lab): string => join(lab.dir, 's3', 'metadata');

const url = (lab: Lab, host = '127.0.0.1'): string => `http://${host}:${port(lab, 's3')}`;

/** How it is got at from this machine, and from pods once they have a network. */
export function s3Access(lab: Lab): S3Access {
  const { podNetwork, tokens } = lab.record;
  return {
    endpoint: url(lab),
    ...(podNetwork !== undefined ? { endpointForPods: url(lab, hostAddress(lab.record)) } : {}),
    accessKeyId: 'lab',
    secretAccessKey: tokens.admin,
    folder: dataFolder(lab),
  };
}

/** A server that speaks S3, over a folder. */
export const versitygw: Component = {
  name: 'versitygw',
  binaries: ['versitygw'],
  ports: ['s3'],
  after: [],
  async prepare(lab) {
    for (const folder of [dataFolder(lab), metadataFolder(lab)])
      await mkdir(folder, { recursive: true });
  },
  command(lab) {
    const { accessKeyId, secretAccessKey } = s3Access(lab);
    return {
      // On all addresses: that of the pods' network may come later.
      args: [
        '--port',
        `:${port(lab, 's3')}`,
        '--health',
        '/health',
        '--keep-alive',
        '--quiet',
        'posix',
        '--sidecar',
        metadataFolder(lab),
        dataFolder(lab),
      ],
      env: { ROOT_ACCESS_KEY: accessKeyId, ROOT_SECRET_KEY: secretAccessKey },
    };
  },
  healthy: (lab) => isOk(`${url(lab)}/health`),
  readyWithinMs: 30_000,
  stop: { signal: 'SIGTERM', withinMs: 10_000 },
  fix: 'if its data is damaged, run `lab down --purge`',
};
