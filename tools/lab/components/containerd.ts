import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Component, Lab } from '../component.ts';
import { fingerprintOfImage, IMAGES, PAUSE_IMAGE } from '../images/definitions.ts';
import { writeRecord } from '../store.ts';
import { cniNetworkName, containerdFolder, containerdSocket, runFolder } from '../nodeFiles.ts';
import { checkNodeRequirements, cniFolder, mayLowerOomScore } from '../nodeRequirements.ts';
import { bridgeName, ensureBridge, hostAddress } from '../podNetwork.ts';
import { acceptsConnections } from '../probe.ts';

const configPath = (lab: Lab): string => join(containerdFolder(lab), 'config.toml');

export const containerd: Component = {
  name: 'containerd',
  binaries: ['containerd', 'ctr', 'runc'],
  ports: [],
  after: [],
  async check() {
    await checkNodeRequirements();
    for (const image of IMAGES) await fingerprintOfImage(image); // says what an image is made of and is missing here
  },
  async prepare(lab) {
    lab.record.podNetwork = await ensureBridge(lab.record);
    const folder = containerdFolder(lab);
    await mkdir(join(folder, 'cni'), { recursive: true });
    // Once chosen it stays: images are unpacked for it.
    lab.record.snapshotter ??= (await overlayWorks(lab)) ? 'overlayfs' : 'native';
    await writeRecord(lab.dir, lab.record);
    await mkdir(runFolder(lab), { recursive: true, mode: 0o700 });
    await rm(containerdSocket(lab), { force: true });
    await writeFile(
      join(folder, 'cni', '10-lab.conflist'),
      JSON.stringify(cniConfig(lab), undefined, 2),
    );
    await writeFile(configPath(lab), await config(lab));
  },
  command: (lab) => ({ args: ['--config', configPath(lab), '--log-level', 'warn'] }),
  healthy: (lab) => acceptsConnections({ path: containerdSocket(lab) }),
  readyWithinMs: 30_000,
  stop: { signal: 'SIGTERM', withinMs: 10_000 },
  fix: 'needs root and a kernel with namespaces and cgroups',
};

function cniConfig(lab: Lab): unknown {
  return {
    cniVersion: '0.4.0',
    name: cniNetworkName(lab),
    plugins: [
      {
        type: 'bridge',
        bridge: bridgeName(lab.record),
        // The bridge already has its address. As a gateway it would enable IP forwarding on the
        // whole machine.
        isGateway: false,
        ipMasq: false,
        ipam: {
          type: 'host-local',
          dataDir: join(runFolder(lab), 'ipam'),
          ranges: [[{ subnet: `${lab.record.podNetwork}.0/24`, gateway: hostAddress(lab.record) }]],
          routes: [{ dst: '0.0.0.0/0' }],
        },
      },
    ],
  };
}

async function config(lab: Lab): Promise<string> {
  const cri = 'plugins."io.containerd.grpc.v1.cri"';
  return `version = 2
root = "${join(containerdFolder(lab), 'root')}"
state = "${join(runFolder(lab), 'state')}"
disabled_plugins = ["io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.zfs", "io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.devmapper", "io.containerd.tracing.processor.v1.otlp", "io.containerd.internal.v1.tracing"]

[grpc]
address = "${containerdSocket(lab)}"

[plugins."io.containerd.internal.v1.opt"]
path = "${join(containerdFolder(lab), 'opt')}"

[${cri}]
sandbox_image = "${PAUSE_IMAGE}"
# Without CAP_SYS_RESOURCE a sandbox fails with runc's "can't get final child's PID from pipe: EOF".
restrict_oom_score_adj = ${!(await mayLowerOomScore())}
# Else in /var/run/netns, where they would outlive the lab.
netns_mounts_under_state_dir = true

[${cri}.cni]
bin_dir = "${await cniFolder()}"
conf_dir = "${join(containerdFolder(lab), 'cni')}"

[${cri}.containerd]
snapshotter = "${lab.record.snapshotter}"
default_runtime_name = "runc"

[${cri}.containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"

[${cri}.containerd.runtimes.runc.options]
BinaryName = "${lab.binaries.runc}"
SystemdCgroup = false
Root = "${join(runFolder(lab), 'runc')}"
`;
}

/** An overlay can be mounted there (not in every sandbox, and not on top of another overlay). */
async function overlayWorks(lab: Lab): Promise<boolean> {
  const work = await mkdtemp(join(containerdFolder(lab), 'overlay-'));
  try {
    for (const name of ['lower', 'upper', 'work', 'merged']) await mkdir(join(work, name));
    const options = `lowerdir=${work}/lower,upperdir=${work}/upper,workdir=${work}/work`;
    await promisify(execFile)('mount', [
      '-t',
      'overlay',
      'overlay',
      '-o',
      options,
      join(work, 'merged'),
    ]);
    await promisify(execFile)('umount', [join(work, 'merged')]);
    return true;
  } catch {
    return false; // the native snapshotter copies instead
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}
