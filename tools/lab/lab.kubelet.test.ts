import { expect, test } from '@jest/globals';
import { readdirSync, readFileSync, existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { networkInterfaces, tmpdir } from 'node:os';
import { join } from 'node:path';
import { execFileSync } from 'node:child_process';
import { kill, down, restart, status, up } from './lab.ts';
import { checkNodeRequirements } from './nodeRequirements.ts';
import { readRecord } from './store.ts';
import { createTestNamespace } from '../../test/support/pods.ts';
import { describeIf } from '../../test/support/lab.ts';

/** Everything of the lab with this state folder and id that is left on the machine, outside of its folder. */
function traces(stateDir: string, id: string): string[] {
  const processes = readdirSync('/proc')
    .filter((entry) => /^\d+$/.test(entry) && Number(entry) !== process.pid)
    .flatMap((pid) => {
      try {
        const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ');
        return command.includes(stateDir) || command.includes(`/run/holdfast-${id}`)
          ? [`process ${pid} ${command}`]
          : [];
      } catch {
        return []; // ended meanwhile
      }
    });
  const mounts = readFileSync('/proc/self/mountinfo', 'utf8')
    .split('\n')
    .filter((line) => line.includes(stateDir) || line.includes(id));
  const cgroups = execFileSync('find', ['/sys/fs/cgroup', '-maxdepth', '2', '-name', `*${id}*`], {
    encoding: 'utf8',
  })
    .split('\n')
    .filter(Boolean);
  const interfaces = Object.keys(networkInterfaces()).filter((name) => name.includes(id));
  const folders = [`/run/holdfast-${id}`].filter((path) => existsSync(path));
  return [...processes, ...mounts, ...cgroups, ...interfaces, ...folders];
}

await describeIf(
  'lab with a real kubelet of its own',
  checkNodeRequirements,
  { nodes: 'kubelet' },
  () => {
    test('runs pods over restarts of its parts, comes back after a crash of all, and leaves nothing', async () => {
      const stateDir = await mkdtemp(join(tmpdir(), 'hf-lab-'));
      const options = { stateDir, temporal: false, nodes: 'kubelet' } as const;
      const rulesBefore = iptablesRules();
      const panicBefore = kernelPanic();
      try {
        const lab = await up(options);
        const { id } = (await readRecord(stateDir))!;
        expect(traces(stateDir, id).length).toBeGreaterThan(5); // this test sees them
        const namespace = await createTestNamespace(lab.kubernetes?.kubeconfig ?? '', 'lab-own');
        await namespace.createPod('long', { command: ['sh', '-c', 'while :; do sleep 0.2; done'] });
        const before = await namespace.waitForPod('long', (pod) => pod.status?.phase === 'Running');

        const known = await status({ stateDir });
        await up(options);
        expect(await status({ stateDir })).toEqual(known); // every process kept

        await restart(stateDir, 'kube-apiserver', { signal: 'SIGKILL' });
        await restart(stateDir, 'kubelet');
        await restart(stateDir, 'containerd');
        const after = await namespace.waitForPod('long', (pod) => pod.status?.phase === 'Running');
        expect(after.status?.containerStatuses?.[0]?.containerID).toBe(
          before.status?.containerStatuses?.[0]?.containerID,
        );
        expect(after.status?.containerStatuses?.[0]?.restartCount).toBe(0);

        const { components } = await status({ stateDir });
        for (const name of Object.keys(components))
          await kill(stateDir, name as keyof typeof components);
        await up(options);
        await namespace.createPod('afterwards', { command: ['true'] });
        await namespace.waitForPod('afterwards', (pod) => pod.status?.phase === 'Succeeded');

        await down({ stateDir });
        expect(traces(stateDir, id)).toEqual([]);
        expect(iptablesRules()).toBe(rulesBefore);
        expect(existsSync('/run/holdfast-sysctls.json') || kernelPanic() === panicBefore).toBe(
          true,
        ); // as before, unless another lab runs

        // From its data alone: the API server still has the pods, and the node runs them again.
        await up(options);
        await namespace.waitForPod('afterwards', (pod) => pod.status?.phase === 'Succeeded');
        expect(traces(stateDir, id).length).toBeGreaterThan(5);

        // Its folder is deleted while it runs: the next up finds what is left of it.
        await rm(join(stateDir, 'lab.json'));
        await rm(join(stateDir, 'processes'), { recursive: true });
        await up({ stateDir, temporal: false, kubernetes: false });
        expect(traces(stateDir, id)).toEqual([]);
      } finally {
        await down({ stateDir, purge: true });
        await rm(stateDir, { recursive: true, force: true });
      }
    }, 180_000);
  },
);

/** A setting that the kubelet changes. */
const kernelPanic = (): string => readFileSync('/proc/sys/kernel/panic', 'utf8');

function iptablesRules(): string {
  try {
    // Without counters and comments with times.
    return execFileSync('iptables-save', { encoding: 'utf8' }).replaceAll(
      /^#.*$|\[\d+:\d+\]/gm,
      '',
    );
  } catch {
    return 'no iptables on this machine';
  }
}
