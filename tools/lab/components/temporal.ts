import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { port, type Component, type Lab } from '../component.ts';
import { acceptsConnections } from '../probe.ts';
import { SEARCH_ATTRIBUTE_NAMES, servesNamespace } from '../temporalNamespace.ts';

/** As docs/operations.md has users set it. Every limit is Temporal's own: who runs into one here would do so in production. */
export const DYNAMIC_CONFIG: Readonly<Record<string, boolean>> = {
  'matching.enableFairness': true,
  // As Temporal's servers have it by default: the dev server reads the list of search attributes from its database each time it needs it.
  'system.forceSearchAttributesCacheRefreshOnRead': false,
  // A workflow task's answer brings the worker the activities it asks for, without a queue between them. The clients ask for it by default.
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
  healthy: async (lab) =>
    (await acceptsConnections({ port: port(lab, 'temporal') })) &&
    (await acceptsConnections({ port: port(lab, 'temporal-ui') })),
  ready: async (lab) => (await temporal.healthy(lab)) && (await servesNamespace(lab)),
  readyWithinMs: 60_000,
  stop: { signal: 'SIGTERM', withinMs: 15_000 },
  fix: 'if its data is damaged, run `lab down --purge`',
};
