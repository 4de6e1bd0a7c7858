import { get, type RequestOptions } from 'node:https';
import { text } from 'node:stream/consumers';
import { loadKubeConfig } from '../../activities/compute/kubernetes/kubeConfig.ts';
import { parseMetrics, type Sample } from './metrics.ts';

/** Returns the metrics of the API server. */
export async function apiServerMetrics(kubeconfig: string): Promise<Sample[]> {
  const config = loadKubeConfig({ path: kubeconfig });
  const cluster = config.getCurrentCluster();
  if (!cluster) throw new Error(`${kubeconfig}: has no current cluster`);
  const options: RequestOptions = {};
  await config.applyToHTTPSOptions(options);
  return await new Promise((resolve, reject) => {
    get(`${cluster.server}/metrics`, options, (answer) => {
      text(answer).then((body) => {
        if (answer.statusCode === 200) resolve(parseMetrics(body));
        else
          reject(
            new Error(
              `failed to read the metrics of the API server: ${answer.statusCode}: ${body.slice(0, 200)}`,
            ),
          );
      }, reject);
    }).on('error', reject);
  });
}
