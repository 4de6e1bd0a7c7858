import { execFile } from 'node:child_process';
import { networkInterfaces } from 'node:os';
import { promisify } from 'node:util';
import type { LabRecord } from './component.ts';

const run = promisify(execFile);

/** Interface names have at most 15 characters. */
export const bridgeName = (record: Pick<LabRecord, 'id'>): string => `hf-${record.id}`;

/** The bridge's address: the node's address, and where pods reach servers of this machine. */
export function hostAddress({ podNetwork }: Pick<LabRecord, 'podNetwork'>): string {
  if (podNetwork === undefined) throw new Error('this lab has no pod network yet');
  return `${podNetwork}.1`;
}

/**
 * Creates the bridge of the pods. The CNI plugin would create it with the first pod only, but tests
 * listen on its address before. There is no forwarding and no masquerading: pods reach this machine
 * and each other, but no other network, and no iptables rules are needed.
 * @returns the prefix of the network, such as `10.211.3`
 */
export async function ensureBridge(record: LabRecord): Promise<string> {
  const name = bridgeName(record);
  const present = networkInterfaces()[name]?.find(({ family }) => family === 'IPv4');
  if (present !== undefined) return present.address.replace(/\.1$/, '');
  await removeBridge(record); // one without an address is a left-over
  const taken = await addresses();
  const network =
    record.podNetwork !== undefined && isFree(record.podNetwork, taken)
      ? record.podNetwork
      : chooseNetwork(taken);
  await run('ip', ['link', 'add', name, 'address', hardwareAddress(network), 'type', 'bridge']);
  await run('ip', ['address', 'add', `${network}.1/24`, 'dev', name]);
  await run('ip', ['link', 'set', name, 'up']);
  return network;
}

/**
 * Returns a fixed hardware address. A bridge without one takes the lowest address of its ports,
 * which changes with each pod. Other pods would then lose this machine for up to a minute, until
 * they resolve the address again.
 */
function hardwareAddress(network: string): string {
  const octets = [...network.split('.').map(Number), 1];
  return ['0a', '58', ...octets.map((octet) => octet.toString(16).padStart(2, '0'))].join(':');
}

/** Deletes the bridge; absent is fine. */
export async function removeBridge(record: Pick<LabRecord, 'id'>): Promise<void> {
  await run('ip', ['link', 'delete', bridgeName(record)]).catch((error: Error) => {
    if (!/Cannot find device|ENOENT/.test(error.message)) throw error;
  });
}

function chooseNetwork(taken: string): string {
  for (let attempt = 0; attempt < 500; attempt++) {
    const network = `10.211.${Math.floor(Math.random() * 256)}`;
    if (isFree(network, taken)) return network;
  }
  throw new Error('no free /24 in 10.211.0.0/16 for the pods of the lab');
}

/**
 * Lists the addresses of all interfaces. Node.js omits those that are down, such as the bridge of a
 * lab without pods.
 */
const addresses = async (): Promise<string> =>
  (await run('ip', ['-4', '-oneline', 'address'])).stdout;

const isFree = (network: string, taken: string): boolean => !taken.includes(` ${network}.`);
