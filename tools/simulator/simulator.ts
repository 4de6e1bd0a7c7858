import { fastify, type FastifyInstance } from 'fastify';
import type { AddressInfo } from 'node:net';
import * as answers from './responses.ts';
import { serveAppEndpoints } from './appEndpoints.ts';
import { serveUserEndpoints } from './userEndpoints.ts';
import { Control } from './control.ts';
import { serveControl } from './controlEndpoints.ts';
import { serveJobEndpoints } from './jobEndpoints.ts';
import { withDefaults, type SimulatorOptions } from './options.ts';
import { serveScaleSets } from './scaleSetEndpoints.ts';
import { serveRunnerEndpoints } from './runnerEndpoints.ts';
import { serveRunnerProtocol } from './runnerProtocol.ts';
import { StateFile } from './stateFile.ts';
import { World } from './world.ts';

export type { SimulatorOptions } from './options.ts';

/** How often offline registrations are looked through. */
const SWEEP_MS = 60_000;

/** A running simulator in this process. Other processes use {@link SimulatorClient}. */
export class Simulator extends Control {
  /** Where it listens: the base URL of the REST API, of the runners and of the control API. */
  readonly url: string;
  readonly #server: FastifyInstance;
  readonly #sweep: NodeJS.Timeout;
  readonly #state: StateFile | undefined;

  constructor(world: World, server: FastifyInstance, state: StateFile | undefined) {
    super(world);
    this.url = world.url;
    this.#server = server;
    this.#state = state;
    this.#sweep = setInterval(() => world.dispatch.removeStale(Date.now()), SWEEP_MS).unref();
  }

  /** Closes every connection and forgets everything that is not in the state file. */
  async stop(): Promise<void> {
    clearInterval(this.#sweep);
    this.#state?.save();
    this.world.dispatch.stop();
    this.world.webhooks.stop();
    this.world.scaleSets.stop();
    this.#server.server.closeAllConnections();
    await this.#server.close();
  }
}

/** Starts a simulator. @throws when the port is taken */
export async function startSimulator(options: SimulatorOptions = {}): Promise<Simulator> {
  const settings = withDefaults(options);
  const world = new World(settings);
  const state =
    settings.stateFile === undefined ? undefined : new StateFile(settings.stateFile, world);
  state?.load();
  const server = fastify({
    logger: false,
    forceCloseConnections: true,
    bodyLimit: 16 * 1024 * 1024,
    keepAliveTimeout: 75_000,
    routerOptions: { maxParamLength: 500 },
  });
  server.removeContentTypeParser('application/json');
  server.addContentTypeParser('*', { parseAs: 'string' }, (_request, body, done) =>
    done(null, parseBody(String(body))),
  );
  serveRunnerEndpoints(server, world);
  serveJobEndpoints(server, world);
  serveAppEndpoints(server, world);
  serveUserEndpoints(server, world);
  serveScaleSets(server, world);
  serveRunnerProtocol(server, world);
  serveControl(server, world);
  server.setNotFoundHandler(async (_request, reply) => {
    const { status, body } = answers.notFound();
    return reply.code(status).send(body);
  });
  await server.listen({ port: settings.port, host: settings.host });
  const { port } = server.server.address() as AddressInfo;
  world.url = `http://${settings.host === '0.0.0.0' || settings.host === '::' ? '127.0.0.1' : settings.host}:${port}`;
  return new Simulator(world, server, state);
}

/** Clients of GitHub may send an empty body with a JSON content type. */
function parseBody(text: string): unknown {
  if (text === '') return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return null; // not JSON: the endpoint says what it misses
  }
}
