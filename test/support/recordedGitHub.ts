import Fastify, {
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  type FastifyServerOptions,
} from 'fastify';

export interface RecordedAnswer {
  status: number;
  body?: unknown;
  headers?: Record<string, string>;
  /** Responds when this resolves. */
  after?: Promise<unknown>;
}

/** `reset`: closes the connection without a response. `hang`: never responds. */
export type Step = RecordedAnswer | 'reset' | 'hang' | ((request: SeenRequest) => RecordedAnswer);

export interface SeenRequest {
  method: string;
  url: string;
  headers: Record<string, string | string[] | undefined>;
  body: unknown;
}

/**
 * A local server that sends recorded responses, for cases that a simulator of GitHub does not have:
 * error pages of proxies, closed connections, no response.
 */
export class RecordedGitHub {
  readonly requests: SeenRequest[] = [];
  readonly #server: FastifyInstance;
  readonly #steps = new Map<string, Step[]>();
  #url = '';

  constructor(options: { https?: { key: string; cert: string } } = {}) {
    this.#server = Fastify({
      forceCloseConnections: true,
      ...options,
    } as FastifyServerOptions) as unknown as FastifyInstance;
    this.#server.all('/*', (request, reply) => this.#answer(request, reply));
  }

  async start(): Promise<this> {
    this.#url = (await this.#server.listen({ host: '127.0.0.1', port: 0 })).replace(/\/$/, '');
    return this;
  }

  get url(): string {
    return this.#url;
  }

  /**
   * Sets the responses to `METHOD /path` (without the query), in this order. The last one repeats.
   */
  on(endpoint: string, ...steps: Step[]): this {
    this.#steps.set(endpoint, steps);
    return this;
  }

  /** `METHOD /path?query` of all requests. */
  get seen(): string[] {
    return this.requests.map(({ method, url }) => `${method} ${url}`);
  }

  stop(): Promise<void> {
    return this.#server.close();
  }

  async #answer(request: FastifyRequest, reply: FastifyReply): Promise<unknown> {
    const seen: SeenRequest = {
      method: request.method,
      url: request.url,
      headers: request.headers,
      body: request.body,
    };
    this.requests.push(seen);
    const steps = this.#steps.get(`${request.method} ${request.url.split('?')[0]}`) ?? [];
    const next = steps.length > 1 ? steps.shift() : steps[0];
    const step = typeof next === 'function' ? next(seen) : next;
    if (step === 'reset') {
      request.raw.socket.resetAndDestroy();
      return reply.hijack();
    }
    if (step === 'hang') return reply.hijack();
    const { status, body, headers, after } = step ?? {
      status: 404,
      body: { message: 'Not Found', documentation_url: 'https://docs.github.com/rest' },
    };
    await after;
    return reply
      .code(status)
      .headers(headers ?? {})
      .send(body);
  }
}

export const runnerJson = (id: number, name: string, more: object = {}): object => ({
  id,
  name,
  os: 'linux',
  status: 'online',
  busy: false,
  labels: [{ id: 1, name: 'self-hosted', type: 'read-only' }],
  ...more,
});

export const listJson = (...runners: object[]): RecordedAnswer => ({
  status: 200,
  body: { total_count: runners.length, runners },
});
