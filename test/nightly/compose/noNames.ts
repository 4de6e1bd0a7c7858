import { createSocket } from 'node:dgram';
import { once } from 'node:events';

const HEADER_BYTES = 12;

/**
 * A name server that knows no name, for containers that cannot reach one: clients of gRPC ask for more about every name that they connect to, and wait for the answer.
 * @param host - address of this machine at which it listens, on port 53
 */
export async function startNoNames(host: string): Promise<{ stop(): void }> {
  const socket = createSocket('udp4');
  socket.on('message', (query, { port, address }) => socket.send(nothing(query), port, address));
  socket.bind(53, host);
  await once(socket, 'listening');
  return { stop: () => void socket.close() };
}

/** NXDOMAIN to a query of one question: https://www.rfc-editor.org/rfc/rfc1035#section-4.1 */
function nothing(query: Buffer): Buffer {
  const answer = Buffer.from(query.subarray(0, endOfQuestion(query)));
  answer.writeUInt16BE(0x8183, 2);
  answer.writeUInt16BE(1, 4);
  answer.fill(0, 6, HEADER_BYTES);
  return answer;
}

/** Labels, each after its length, up to an empty one; then type and class. */
function endOfQuestion(query: Buffer): number {
  let at = HEADER_BYTES;
  for (let length = query[at] ?? 0; length > 0; length = query[at] ?? 0) at += length + 1;
  return at + 5;
}
