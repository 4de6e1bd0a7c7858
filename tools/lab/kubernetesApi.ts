import { readFile } from 'node:fs/promises';
import type { Lab } from './component.ts';
import { apiServerCertificate, apiServerUrl } from './kubernetesFiles.ts';
import { request, type Answer, type RequestOptions } from './probe.ts';

/** One request to the lab's API server as its admin; `undefined` when there was no answer. */
export async function kubernetesApi(
  lab: Lab,
  path: string,
  options: RequestOptions = {},
): Promise<Answer | undefined> {
  const ca = await readFile(apiServerCertificate(lab), 'utf8').catch(() => undefined);
  if (ca === undefined) return undefined;
  return request(`${apiServerUrl(lab)}${path}`, { ca, token: lab.record.tokens.admin, ...options });
}

/** Creates an object; one that exists is fine. @throws Error with the server's answer */
export async function createObject(lab: Lab, path: string, body: unknown): Promise<void> {
  const answer = await kubernetesApi(lab, path, { method: 'POST', body });
  if (answer === undefined || (answer.status >= 300 && answer.status !== 409)) {
    throw new Error(
      `POST ${path}: ${answer === undefined ? 'no answer' : `${answer.status} ${answer.body}`}`,
    );
  }
}
