import { fetchComponents } from './fetchComponents.ts';
import temporal from './temporal.ts';

/** Prepares the tests on an API server, an S3 server, Helm and the like. */
export default async function setup(): Promise<void> {
  await temporal();
  await fetchComponents({ kubernetes: true }, [
    'etcd',
    'kube-apiserver',
    'kube-controller-manager',
    'kube-scheduler',
    'kubectl',
    'helm',
    'otelcol',
  ]);
  await fetchComponents({ s3: true }, ['versitygw']);
}
