import { join } from 'node:path';
import type { Lab } from './component.ts';

/**
 * Folder of the node's sockets and mounts. Its path is short, because that of a socket has at most
 * 107 characters, and it is outside of the data.
 */
export const runFolder = (lab: Pick<Lab, 'record'>): string => `/run/holdfast-${lab.record.id}`;
export const containerdSocket = (lab: Pick<Lab, 'record'>): string =>
  join(runFolder(lab), 'containerd.sock');
export const containerdFolder = (lab: Lab): string => join(lab.dir, 'containerd');
export const kubeletFolder = (lab: Lab): string => join(lab.dir, 'kubelet');
export const cniNetworkName = (lab: Lab): string => `holdfast-${lab.record.id}`;
