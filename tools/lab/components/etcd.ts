import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { port, type Component, type Lab } from '../component.ts';
import { isOk } from '../probe.ts';

export const etcdUrl = (lab: Lab): string => `http://127.0.0.1:${port(lab, 'etcd')}`;

export const etcd: Component = {
  name: 'etcd',
  binaries: ['etcd'],
  ports: ['etcd', 'etcd-peer'],
  after: [],
  async prepare(lab) {
    await mkdir(join(lab.dir, 'etcd'), { recursive: true, mode: 0o700 });
  },
  command(lab) {
    const peer = `http://127.0.0.1:${port(lab, 'etcd-peer')}`;
    return {
      args: [
        '--name', 'lab',
        '--data-dir', join(lab.dir, 'etcd'),
        '--listen-client-urls', etcdUrl(lab),
        '--advertise-client-urls', etcdUrl(lab),
        '--listen-peer-urls', peer,
        '--initial-advertise-peer-urls', peer,
        '--initial-cluster', `lab=${peer}`,
        '--unsafe-no-fsync',
        '--quota-backend-bytes', String(4 * 1024 ** 3),
        '--log-level', 'warn',
      ],
    }; // prettier-ignore
  },
  healthy: (lab) => isOk(`${etcdUrl(lab)}/health`),
  readyWithinMs: 30_000,
  stop: { signal: 'SIGTERM', withinMs: 10_000 },
  fix: 'if its data is damaged, run `lab down --purge`',
};
