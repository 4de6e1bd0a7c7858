import type { Registration } from '../../activities/ports/ciServer.ts';
import type {
  JobMessage,
  RegisterResponse,
  RunnerMessage,
  SessionResponse,
} from '../../tools/simulator/runner/wire.ts';

/**
 * A runner in this process that uses the simulator's runner protocol with only the adapter's data,
 * and ends its job when the test requests it.
 */
export class WireRunner {
  /** The job that it has started. */
  readonly job: Promise<JobMessage>;
  readonly #url: string;
  readonly #credential: string;
  readonly #stopped = new AbortController();

  private constructor(url: string, credential: string, session: string) {
    this.#url = url;
    this.#credential = credential;
    this.job = this.#takeJob(session);
    this.job.catch(() => undefined); // a runner that is stopped before it got a job
  }

  static async start(
    url: string,
    { env }: Registration,
  ): Promise<{ runner: WireRunner; id: number }> {
    const credential = await credentialOf(url, env);
    const { sessionId, runnerId } = await call<SessionResponse>(
      url,
      credential,
      'POST',
      'session',
      {
        version: '2.330.0',
        os: 'linux',
        arch: 'x64',
      },
    );
    return { runner: new WireRunner(url, credential, sessionId), id: runnerId };
  }

  /** Ends its running job. */
  async finish(): Promise<void> {
    const { id } = await this.job;
    await call(this.#url, this.#credential, 'POST', `jobs/${id}/complete`, { result: 'Succeeded' });
  }

  stop(): void {
    this.#stopped.abort();
  }

  async #takeJob(session: string): Promise<JobMessage> {
    for (;;) {
      const message = await call<RunnerMessage | undefined>(
        this.#url,
        this.#credential,
        'GET',
        `message/${session}`,
        undefined,
        this.#stopped.signal,
      );
      if (message?.type !== 'job') continue;
      await call(this.#url, this.#credential, 'POST', `jobs/${message.id}/start`);
      return message;
    }
  }
}

async function credentialOf(url: string, env: Registration['env']): Promise<string> {
  const jit = env['ACTIONS_RUNNER_INPUT_JITCONFIG'];
  if (jit === undefined) {
    const {
      RUNNER_SCOPE: scope,
      RUNNER_TOKEN: token,
      RUNNER_NAME: name,
      RUNNER_LABELS: labels = '',
      RUNNER_EPHEMERAL: ephemeral,
      RUNNER_GROUP: group,
    } = env;
    const body = {
      scope,
      token,
      name,
      labels: labels.split(','),
      ephemeral: ephemeral === 'true',
      version: '2.330.0',
      ...(group && { group }),
    };
    return (await call<RegisterResponse>(url, '', 'POST', 'register', body)).credential;
  }
  const files = JSON.parse(Buffer.from(jit, 'base64').toString()) as Record<string, string>;
  const credentials = JSON.parse(Buffer.from(files['.credentials'] ?? '', 'base64').toString()) as {
    data: { token: string };
  };
  return credentials.data.token;
}

async function call<T>(
  url: string,
  credential: string,
  method: string,
  path: string,
  body?: unknown,
  signal?: AbortSignal,
): Promise<T> {
  const answer = await fetch(`${url}/_runner/${path}`, {
    method,
    headers: {
      authorization: `Bearer ${credential}`,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    ...(signal === undefined ? {} : { signal }),
  });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${method} /_runner/${path} answered ${answer.status} ${text}`);
  return (text === '' ? undefined : JSON.parse(text)) as T;
}
