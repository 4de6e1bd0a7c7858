/**
 * GitHub as ARC sees it: the simulator with the registrations, behind the part of the Actions
 * service that ARC's controller of scale sets calls.
 */
import { randomUUID } from 'node:crypto';
import { fastify, type FastifyInstance, type FastifyReply } from 'fastify';
import type { AddressInfo } from 'node:net';

interface ScaleSet {
  readonly id: number;
  readonly name: string;
  readonly runnerGroupId: number;
}
interface Runner {
  readonly id: number;
  readonly name: string;
}

export class ScaleSetService {
  readonly #server: FastifyInstance;
  readonly #sets = new Map<number, ScaleSet>();
  readonly #simulatorUrl: string;
  readonly #token: string;
  readonly #organization: string;

  private constructor(
    server: FastifyInstance,
    simulatorUrl: string,
    token: string,
    organization: string,
  ) {
    this.#server = server;
    this.#simulatorUrl = simulatorUrl;
    this.#token = token;
    this.#organization = organization;
  }

  /** @param token - token for requests to the simulator on behalf of ARC */
  static async start(
    simulatorUrl: string,
    token: string,
    organization: string,
  ): Promise<ScaleSetService> {
    const server = fastify({ forceCloseConnections: true });
    // One request without a body has a Content-Type header.
    server.removeAllContentTypeParsers();
    server.addContentTypeParser('*', { parseAs: 'string' }, (_request, body, done) =>
      done(null, body === '' ? undefined : JSON.parse(String(body))),
    );
    const service = new ScaleSetService(server, simulatorUrl, token, organization);
    service.#serve();
    await server.listen({ host: '127.0.0.1', port: 0 });
    return service;
  }

  /** URL of the REST API. */
  get url(): string {
    return `http://127.0.0.1:${(this.#server.server.address() as AddressInfo).port}`;
  }

  /** `githubConfigUrl` of a scale set. */
  get configUrl(): string {
    return `${this.url}/${this.#organization}`;
  }

  /** Names of the scale sets that are registered. */
  get names(): string[] {
    return [...this.#sets.values()].map(({ name }) => name);
  }

  async close(): Promise<void> {
    await this.#server.close();
  }

  #serve(): void {
    const server = this.#server;
    const sets = '/_apis/runtime/runnerscalesets';
    const agents = '/_apis/distributedtask/pools/0/agents';
    server.post('/api/v3/orgs/:org/actions/runners/registration-token', async (_request, reply) =>
      reply.code(201).send({ token: randomUUID(), expires_at: inAnHour().toISOString() }),
    );
    server.post('/api/v3/actions/runner-registration', async () => ({
      url: `${this.url}/`,
      token: unsignedToken(),
    }));
    server.get<{ Querystring: { name?: string } }>(sets, async ({ query }) =>
      listOf([...this.#sets.values()].filter(({ name }) => name === query.name)),
    );
    server.post<{ Body: Omit<ScaleSet, 'id'> }>(sets, async ({ body }) => {
      const set = { ...body, runnerGroupName: 'Default', id: this.#sets.size + 1 };
      this.#sets.set(set.id, set);
      return set;
    });
    server.get<{ Params: { id: string } }>(`${sets}/:id`, async ({ params }) =>
      this.#sets.get(Number(params.id)),
    );
    server.delete<{ Params: { id: string } }>(`${sets}/:id`, async ({ params }, reply) => {
      this.#sets.delete(Number(params.id));
      return reply.code(204).send();
    });
    server.post<{ Params: { id: string }; Body: { name: string } }>(
      `${sets}/:id/generatejitconfig`,
      async ({ params, body }, reply) => {
        const { name = '' } = this.#sets.get(Number(params.id)) ?? {};
        const answer = await this.#ask('POST', '/generate-jitconfig', {
          name: body.name,
          runner_group_id: 1,
          labels: [name],
        });
        if (answer.status === 409) return refuse(reply, 409, 'AgentExistsException');
        const { runner, encoded_jit_config: encodedJITConfig } = (await answer.json()) as {
          runner: Runner;
          encoded_jit_config: string;
        };
        return { runner, encodedJITConfig };
      },
    );
    server.get<{ Querystring: { agentName: string } }>(agents, async ({ query }) =>
      listOf(
        (
          (await (await this.#ask('GET', `?name=${query.agentName}`)).json()) as {
            runners: Runner[];
          }
        ).runners,
      ),
    );
    server.get<{ Params: { id: string } }>(`${agents}/:id`, async ({ params }, reply) => {
      const answer = await this.#ask('GET', `/${params.id}`);
      return answer.ok ? await answer.json() : refuse(reply, 404, 'AgentNotFoundException');
    });
    server.delete<{ Params: { id: string } }>(`${agents}/:id`, async ({ params }, reply) => {
      const { status } = await this.#ask('DELETE', `/${params.id}`);
      // A registration that does not exist counts as removed: ARC sends the request twice.
      return status === 422
        ? refuse(reply, 400, 'JobStillRunningException')
        : reply.code(204).send();
    });
    server.all('/*', async ({ method, url, headers, body }, reply) => {
      const answer = await fetch(`${this.#simulatorUrl}${url}`, {
        method,
        headers: { authorization: headers.authorization ?? '', 'content-type': 'application/json' },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      // Without the maximum age of the list: with it ARC would need a minute to see its own runners.
      for (const name of ['content-type', 'link'])
        if (answer.headers.has(name)) reply.header(name, answer.headers.get(name));
      return await reply.code(answer.status).send(await answer.text());
    });
  }

  async #ask(method: string, path: string, body?: object): Promise<Response> {
    return await fetch(`${this.#simulatorUrl}/orgs/${this.#organization}/actions/runners${path}`, {
      method,
      headers: { authorization: `Bearer ${this.#token}`, 'content-type': 'application/json' },
      ...(body && { body: JSON.stringify(body) }),
    });
  }
}

const inAnHour = (): Date => new Date(Date.now() + 3_600_000);
const listOf = (value: readonly object[]): object => ({ count: value.length, value });
const refuse = (reply: FastifyReply, status: number, typeName: string): FastifyReply =>
  reply.code(status).send({ typeName, message: typeName });

/** ARC reads only the expiry of the token. */
function unsignedToken(): string {
  const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');
  return `${part({ alg: 'HS256', typ: 'JWT' })}.${part({ exp: Math.floor(inAnHour().getTime() / 1_000) })}.${Buffer.from('none').toString('base64url')}`;
}
