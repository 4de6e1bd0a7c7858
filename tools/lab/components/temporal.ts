import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { port, type Component, type Lab } from '../component.ts';
import { acceptsConnections } from '../probe.ts';
import { SEARCH_ATTRIBUTE_NAMES, servesNamespace } from '../temporalNamespace.ts';

/**
 * The configuration that docs/operations.md recommends. Limits have Temporal's defaults, so that
 * tests reach them as production would.
 */
export const DYNAMIC_CONFIG: Readonly<Record<string, boolean>> = {
  'matching.enableFairness': true,
  // The default of Temporal's servers. The dev server otherwise reads the list of search attributes
  // from its database for each use.
  'system.forceSearchAttributesCacheRefreshOnRead': false,
  // The response to a workflow task contains the activities that it schedules, without a task queue
  // in between. Clients request this by default.
  'system.enableActivityEagerExecution': true,
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
        // Data survives the death of the process, but not of the machine. Without the write-ahead
        // log every change would copy its pages first.
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
  healthy: async (lab) =>
    (await acceptsConnections({ port: port(lab, 'temporal') })) &&
    (await acceptsConnections({ port: port(lab, 'temporal-ui') })),
  ready: async (lab) => (await temporal.healthy(lab)) && (await servesNamespace(lab)),
  readyWithinMs: 60_000,
  stop: { signal: 'SIGTERM', withinMs: 15_000 },
  fix: 'if its data is damaged, run `lab down --purge`',
};
