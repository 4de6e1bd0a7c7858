import { createServer, connect, type AddressInfo, type Socket } from 'node:net';

/** Proxy between one worker and Temporal. */
export interface TemporalProxy {
  /** Address for the worker. */
  readonly address: string;
  /**
   * Stops all traffic, while the connections stay open.
   * @returns a function that cuts these connections and allows new ones
   */
  cutOff(): () => void;
  close(): Promise<void>;
}

/**
 * Starts a proxy.
 * @param target - address of Temporal, `host:port`
 */
export async function startTemporalProxy(target: string): Promise<TemporalProxy> {
  const [host = '', port = ''] = target.split(':');
  const sockets = new Set<Socket>();
  let isCutOff = false;
  const track = (socket: Socket): Socket => {
    sockets.add(socket);
    // A socket whose other side is destroyed fails on its next write.
    socket.on('error', () => socket.destroy());
    socket.on('close', () => sockets.delete(socket));
    return socket;
  };
  const server = createServer((inner) => {
    track(inner);
    if (isCutOff) return;
    const outer = track(connect(Number(port), host));
    inner.pipe(outer);
    outer.pipe(inner);
    inner.on('close', () => outer.destroy());
    outer.on('close', () => inner.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const destroyAll = (): void => {
    for (const socket of sockets) socket.destroy();
  };
  return {
    address: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    cutOff() {
      isCutOff = true;
      for (const socket of sockets) socket.unpipe().pause();
      return () => {
        isCutOff = false;
        destroyAll();
      };
    },
    async close() {
      destroyAll();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}
