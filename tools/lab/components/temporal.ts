import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { Connection } from '@temporalio/client';
import { SEARCH_ATTRIBUTES } from '../../../core/contract/index.ts';
import { port, type Component, type Lab } from '../component.ts';
import { accepts } from '../probe.ts';

export const NAMESPACE = 'default';

const searchAttributeNames = Object.values(SEARCH_ATTRIBUTES).map((key) => key.name);

/**
 * Limits of the dev server that a few thousand workflows on one machine run into. They protect a shared server from its clients;
 * here the only client is the test. (temporalio/temporal, common/dynamicconfig/constants.go.)
 */
const DYNAMIC_CONFIG: Record<string, boolean | number> = {
  'matching.enableFairness': true,
  // As Temporal's servers have it by default: the dev server reads the list of search attributes from its database each time it needs it.
  'system.forceSearchAttributesCacheRefreshOnRead': false,
  // A workflow task's answer brings the worker the activities it asks for, without a queue between them. The clients ask for it by default.
  'system.enableActivityEagerExecution': true,
  'frontend.rps': 100_000,
  'frontend.namespaceRPS': 100_000,
  'frontend.namespaceRPS.visibility': 10_000,
  // Long polls, queries and updates in flight per API; 1,200 by default.
  'frontend.namespaceCount': 20_000,
  'frontend.persistenceMaxQPS': 100_000,
  'history.rps': 100_000,
  'history.persistenceMaxQPS': 100_000,
  'matching.rps': 100_000,
  'matching.persistenceMaxQPS': 100_000,
};

export const temporalAddress = (lab: Lab): string => `127.0.0.1:${port(lab, 'temporal')}`;
export const temporalUiUrl = (lab: Lab): string => `http://127.0.0.1:${port(lab, 'temporal-ui')}`;

export const temporal: Component = {
  name: 'temporal',
  binaries: ['temporal'],
  ports: ['temporal', 'temporal-ui', 'temporal-http', 'temporal-metrics'],
  after: [],
  async prepare(lab) {
    await mkdir(join(lab.dir, 'temporal'), { recursive: true });
  },
  command(lab) {
    return {
      args: [
        'server', 'start-dev',
        '--ip', '127.0.0.1',
        '--port', String(port(lab, 'temporal')),
        '--ui-port', String(port(lab, 'temporal-ui')),
        '--http-port', String(port(lab, 'temporal-http')),
        '--metrics-port', String(port(lab, 'temporal-metrics')),
        '--db-filename', join(lab.dir, 'temporal', 'temporal.db'),
        // Survives the death of the process, not of the machine: enough here, and much faster. Without the log every change costs
        // a copy of its pages first.
        '--sqlite-pragma', 'synchronous=OFF',
        '--sqlite-pragma', 'journal_mode=WAL',
        '--log-level', 'warn',
        ...searchAttributeNames.flatMap((name) => ['--search-attribute', `${name}=Keyword`]),
        ...Object.entries(DYNAMIC_CONFIG).flatMap(([key, value]) => ['--dynamic-config-value', `${key}=${value}`]),
      ],
      // The reader's own profile must not change how the lab's server runs.
      env: { TEMPORAL_CONFIG_FILE: '/dev/null' },
    }; // prettier-ignore
  },
  healthy: async (lab) => (await accepts({ port: port(lab, 'temporal') })) && (await accepts({ port: port(lab, 'temporal-ui') })),
  ready: async (lab) => (await temporal.healthy(lab)) && (await servesNamespace(temporalAddress(lab))),
  readyWithinMs: 60_000,
  stop: { signal: 'SIGTERM', withinMs: 15_000 },
  fix: 'if its data is damaged, run `lab down --purge`',
};

/** temporal.api.enums.v1.IndexedValueType */
const KEYWORD = 2;

/** The namespace exists, and all search attributes can be used. A database of an earlier Holdfast has only those of then: the others are added. */
async function servesNamespace(address: string): Promise<boolean> {
  let connection: Connection;
  try {
    connection = await Connection.connect({ address, connectTimeout: 2_000 });
  } catch {
    return false;
  }
  try {
    await connection.workflowService.describeNamespace({ namespace: NAMESPACE });
    const { customAttributes } = await connection.operatorService.listSearchAttributes({ namespace: NAMESPACE });
    const missing = searchAttributeNames.filter((name) => !(name in (customAttributes ?? {})));
    if (missing.length === 0) {
      // Listed is not usable yet: the server refuses a new one for some seconds.
      await connection.workflowService.countWorkflowExecutions({ namespace: NAMESPACE, query: searchAttributeNames.map((name) => `${name} IS NULL`).join(' AND ') });
      return true;
    }
    await connection.operatorService.addSearchAttributes({ namespace: NAMESPACE, searchAttributes: Object.fromEntries(missing.map((name) => [name, KEYWORD])) });
    return false; // asked again
  } catch {
    return false; // not yet
  } finally {
    await connection.close();
  }
}
