/**
 * The API server as `kubectl apply --validate=strict` calls it: an unknown field is an error. The
 * Kubernetes client has other names for some fields.
 */
import { request, type RequestOptions } from 'node:https';
import type { KubeConfig } from '@kubernetes/client-node';
import type { Manifest } from './chart.ts';

interface Answer {
  readonly status: number;
  readonly body: string;
}

export class StrictApi {
  readonly #kubeConfig: KubeConfig;
  readonly #kinds = new Map<string, { readonly name: string; readonly namespaced: boolean }>();

  constructor(kubeConfig: KubeConfig) {
    this.#kubeConfig = kubeConfig;
  }

  /**
   * @param options - `dryRun`: changes nothing
   * @returns why the server rejects the object
   */
  async refusal(
    object: Manifest,
    {
      dryRun = true,
      namespace = object.metadata.namespace,
    }: { dryRun?: boolean; namespace?: string | undefined } = {},
  ): Promise<string | undefined> {
    const { apiVersion = '', kind = '' } = object;
    const group = `${apiVersion.includes('/') ? '/apis' : '/api'}/${apiVersion}`;
    const resource = await this.#resource(group, kind);
    if (resource === undefined) return `the server knows no ${kind} of ${apiVersion}`;
    const path = `${group}${resource.namespaced ? `/namespaces/${namespace}` : ''}/${resource.name}`;
    const { status, body } = await this.#ask(
      'POST',
      `${path}?fieldValidation=Strict${dryRun ? '&dryRun=All' : ''}`,
      object,
    );
    return status < 300
      ? undefined
      : `${kind} ${object.metadata.name}: ${status} ${(JSON.parse(body) as { message: string }).message}`;
  }

  async #resource(
    group: string,
    kind: string,
  ): Promise<{ name: string; namespaced: boolean } | undefined> {
    if (!this.#kinds.has(`${group} ${kind}`)) {
      const { status, body } = await this.#ask('GET', group);
      const { resources } =
        status === 200
          ? (JSON.parse(body) as {
              resources: { name: string; kind: string; namespaced: boolean }[];
            })
          : { resources: [] };
      for (const each of resources)
        if (!each.name.includes('/')) this.#kinds.set(`${group} ${each.kind}`, each);
    }
    return this.#kinds.get(`${group} ${kind}`);
  }

  async #ask(method: string, path: string, body?: object): Promise<Answer> {
    const url = new URL(path, this.#kubeConfig.getCurrentCluster()?.server);
    const options: RequestOptions = { method, headers: { 'content-type': 'application/json' } };
    await this.#kubeConfig.applyToHTTPSOptions(options);
    return await new Promise((resolve, reject) => {
      const sent = request(url, options, (response) => {
        let text = '';
        response
          .setEncoding('utf8')
          .on('data', (part: string) => (text += part))
          .on('end', () => resolve({ status: response.statusCode ?? 0, body: text }))
          .on('error', reject);
      });
      sent.on('error', reject).end(body === undefined ? undefined : JSON.stringify(body));
    });
  }
}
