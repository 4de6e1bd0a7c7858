/**
 * Untrusted clients of the webhook, as a separate process. Each begins a delivery of 1 MiB with
 * valid headers except the signature, and sends the body slowly. A client whose connection is
 * closed connects again a second later.
 *   node slowClientsProcess.ts URL CONNECTIONS
 * Prints a JSON line each second: `open`, the open connections; `begun`, the deliveries begun;
 * `answers`, the responses by status.
 */
import { connect } from 'node:net';

const BODY_BYTES = 1024 * 1024;
/** Part of the body that is sent at once. The whole body takes 100 s. */
const PIECE = Buffer.alloc(BODY_BYTES / 200, 'x');
const EVERY_MS = 500;
const RECONNECT_DELAY_MS = 1_000;

const [address = '', connections = ''] = process.argv.slice(2);
const url = new URL(address);
const head = [
  `POST ${url.pathname} HTTP/1.1`,
  `host: ${url.host}`,
  'content-type: application/json',
  `content-length: ${BODY_BYTES}`,
  'x-github-event: workflow_job',
  'x-github-delivery: 72d3162e-cc78-11e3-81ab-4c9367dc0958',
  `x-hub-signature-256: sha256=${'0a'.repeat(32)}`,
  '\r\n',
].join('\r\n');

let open = 0;
let begun = 0;
const answers: Record<string, number> = {};

function begin(): void {
  const socket = connect(Number(url.port), url.hostname);
  let sending: NodeJS.Timeout | undefined;
  socket.once('connect', () => {
    open++;
    begun++;
    socket.write(head);
    sending = setInterval(() => socket.write(PIECE), EVERY_MS);
    socket.once('close', () => open--);
  });
  socket.once('data', (answer: Buffer) => {
    const status = answer.toString('latin1', 9, 12);
    answers[status] = (answers[status] ?? 0) + 1;
    socket.destroy();
  });
  socket
    .on('error', () => undefined)
    .once('close', () => {
      clearInterval(sending);
      setTimeout(begin, RECONNECT_DELAY_MS);
    });
}

for (let number = 0; number < Number(connections); number++) begin();
setInterval(() => console.log(JSON.stringify({ open, begun, answers })), 1_000);
