import { setTimeout as delay } from 'node:timers/promises';
import type { CoreV1Api } from '@kubernetes/client-node';

/** Creates a namespace, and waits for its default service account, which pods need. */
export async function createNamespace(core: CoreV1Api, name: string): Promise<void> {
  await core.createNamespace({ body: { metadata: { name } } });
  for (;;) {
    const { items } = await core.listNamespacedServiceAccount({ namespace: name });
    if (items.some(({ metadata }) => metadata?.name === 'default')) return;
    await delay(50);
  }
}
