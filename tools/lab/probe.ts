import { connect } from 'node:net';
import { request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';

const TIMEOUT_MS = 3_000;

/** Something accepts connections there. */
export function acceptsConnections(
  where: { port: number; host?: string } | { path: string },
): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect('path' in where ? where : { host: '127.0.0.1', ...where });
    const answer = (value: boolean) => () => {
      socket.destroy();
      resolve(value);
    };
    socket.setTimeout(TIMEOUT_MS, answer(false));
    socket.once('connect', answer(true));
    socket.once('error', answer(false));
  });
}

export interface Answer {
  readonly status: number;
  readonly body: string;
}

export interface RequestOptions {
  method?: string;
  /**
   * CA certificate (PEM). `false`: the certificate is not checked, for health endpoints whose
   * certificate is created at the start.
   */
  ca?: string | false;
  token?: string;
  body?: unknown;
  contentType?: string;
}

/** One HTTP request; `undefined` when there was no answer. */
export function request(url: string, options: RequestOptions = {}): Promise<Answer | undefined> {
  return new Promise((resolve) => {
    const send = url.startsWith('https:') ? httpsRequest : httpRequest;
    const body = options.body === undefined ? undefined : JSON.stringify(options.body);
    const request = send(
      url,
      {
        method: options.method ?? 'GET',
        agent: false,
        timeout: TIMEOUT_MS,
        headers: {
          ...(options.token === undefined ? {} : { authorization: `Bearer ${options.token}` }),
          ...(body === undefined
            ? {}
            : {
                'content-type': options.contentType ?? 'application/json',
                'content-length': Buffer.byteLength(body),
              }),
        },
        ...(options.ca === false ? { rejectUnauthorized: false } : {}),
        ...(typeof options.ca === 'string' ? { ca: options.ca } : {}),
      },
      (response) => {
        let text = '';
        response.setEncoding('utf8');
        response.on('data', (chunk: string) => (text += chunk));
        response.on('end', () => resolve({ status: response.statusCode ?? 0, body: text }));
        response.on('error', () => resolve(undefined));
      },
    );
    request.on('timeout', () => request.destroy(new Error('timeout')));
    request.on('error', () => resolve(undefined));
    request.end(body);
  });
}

export async function isOk(url: string, options: RequestOptions = {}): Promise<boolean> {
  return (await request(url, options))?.status === 200;
}
