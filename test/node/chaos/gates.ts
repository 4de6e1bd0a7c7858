import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

/** Doors that jobs in pods wait behind, so that a test decides when a job ends, however fast the machine is. */
export interface Gates {
  /**
   * A job that says when it begins, counts the seconds behind its gate, and says when it is at its end. Interrupted, it takes three
   * seconds to clean up.
   */
  job(gate: string): string;
  /** Lets the job go on to its end. */
  open(gate: string): void;
  close(): Promise<void>;
}

/** @param host - an address of this machine that pods reach */
export async function startGates(host: string): Promise<Gates> {
  const opened = new Set<string>();
  const server = createServer((request, response) => {
    response
      .writeHead(opened.has((request.url ?? '').slice(1)) ? 200 : 404, { connection: 'close' })
      .end();
  });
  await new Promise<void>((resolve) => {
    server.listen(0, host, resolve);
  });
  const { port } = server.address() as AddressInfo;
  return {
    job: (gate) =>
      `trap 'echo interrupted; sleep 3; echo cleaned up; exit 1' INT TERM; echo begun; i=0; until wget -q -O /dev/null http://${host}:${port}/${gate} 2>/dev/null; do i=$((i+1)); sleep 1; echo second $i; done; echo finished`,
    open: (gate) => void opened.add(gate),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
