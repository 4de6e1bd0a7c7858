import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { port, type Component, type Lab } from '../component.ts';
import { accepts } from '../probe.ts';
import { SEARCH_ATTRIBUTE_NAMES, servesNamespace } from '../temporalNamespace.ts';

/**
 * Limits of Temporal's servers that a few thousand workflows on one machine run into. They protect a shared server from its clients;
 * here the only client is the test. (temporalio/temporal, common/dynamicconfig/constants.go.) Not that of lists, which users have, too.
 */
export const DYNAMIC_CONFIG: Readonly<Record<string, boolean | number>> = {
  'matching.enableFairness': true,
  // As Temporal's servers have it by default: the dev server reads the list of search attributes from its database each time it needs it.
  'system.forceSearchAttributesCacheRefreshOnRead': false,
  // A workflow task's answer brings the worker the activities it asks for, without a queue between them. The clients ask for it by default.
  'system.enableActivityEagerExecution': true,
  'frontend.rps': 100_000,
  'frontend.namespaceRPS': 100_000,
  // Long polls, queries and updates in flight per API; 1,200 by default.
  'frontend.namespaceCount': 20_000,
  'frontend.persistenceMaxQPS': 100_000,
  'history.rps': 100_000,
  'history.persistenceMaxQPS': 100_000,
  'matching.rps': 100_000,
  'matching.persistenceMaxQPS': 100_000,
};

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
        ...SEARCH_ATTRIBUTE_NAMES.flatMap((name) => ['--search-attribute', `${name}=Keyword`]),
        ...Object.entries(DYNAMIC_CONFIG).flatMap(([key, value]) => ['--dynamic-config-value', `${key}=${value}`]),
      ],
      // The reader's own profile must not change how the lab's server runs.
      env: { TEMPORAL_CONFIG_FILE: '/dev/null' },
    }; // prettier-ignore
  },
  healthy: async (lab) => (await accepts({ port: port(lab, 'temporal') })) && (await accepts({ port: port(lab, 'temporal-ui') })),
  ready: async (lab) => (await temporal.healthy(lab)) && (await servesNamespace(lab)),
  readyWithinMs: 60_000,
  stop: { signal: 'SIGTERM', withinMs: 15_000 },
  fix: 'if its data is damaged, run `lab down --purge`',
};
