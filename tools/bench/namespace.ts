import { setTimeout as delay } from 'node:timers/promises';
import type { CoreV1Api } from '@kubernetes/client-node';

/** A pod can be created once the namespace has its default service account. */
export async function createNamespace(core: CoreV1Api, name: string): Promise<void> {
  await core.createNamespace({ body: { metadata: { name } } });
  for (;;) {
    const { items } = await core.listNamespacedServiceAccount({ namespace: name });
    if (items.some(({ metadata }) => metadata?.name === 'default')) return;
    await delay(50);
  }
}
