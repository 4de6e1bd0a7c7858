import { writeFile } from 'node:fs/promises';
import type { Fault as SimulatorFault } from '../../simulator/faults.ts';
import { CREDENTIAL, randomToken } from '../world.ts';
import type { Fault } from './fault.ts';

/** Age of stale lists (ms). Less than the age that runners allow (`listMaxAge` in workload.ts). */
const LIST_AGE_MS = 4_000;
const HTML = {
  status: 502,
  body: '<html><body>Unicorn!</body></html>',
  headers: { 'content-type': 'text/html' },
} as const;

/** Returns a fault that turns faults of the simulator on, and off at its end. */
const switched =
  (...faults: readonly SimulatorFault[]): Fault =>
  ({ simulator }) => {
    const on = faults.map((fault) => simulator.addFault(fault));
    return { end: () => on.forEach(({ id }) => simulator.clearFaults(id)) };
  };

export const ciServerFaults = {
  ci_stale_lists: switched({ kind: 'stale_list', ageMs: LIST_AGE_MS }),
  ci_wrong_states: switched({ kind: 'busy_lies' }, { kind: 'offline_lies', probability: 0.5 }),
  ci_removes_busy: switched({ kind: 'delete_accepts_busy' }),
  ci_slow: (world, planned) =>
    switched({ kind: 'latency', ms: 500 + Math.round(planned.pick * 7_500), probability: 0.5 })(
      world,
      planned,
    ),
  ci_errors: switched({ kind: 'status', status: 503, probability: 0.7 }),
  ci_unreachable: switched({ kind: 'drop', when: 'before' }),
  ci_html: switched({ kind: 'status', ...HTML, probability: 0.7 }),
  ci_drops_requests: switched({ kind: 'drop', when: 'before', probability: 0.5 }),
  ci_drops_answers: switched({ kind: 'drop', when: 'after', probability: 0.5 }),
  // The waits that these faults request are over shortly after the fault.
  ci_primary_limit: switched({ kind: 'primary_limit', resetInMs: 3_000 }),
  ci_secondary_limit: switched({ kind: 'secondary_limit', retryAfterS: 3 }),
  credential_rotated: async ({ simulator, token }) => {
    const old = token.current;
    token.current = randomToken();
    simulator.addToken({ name: CREDENTIAL, token: token.current });
    await writeFile(token.file, token.current);
    return { end: () => simulator.revokeToken(old) };
  },
  credential_revoked: ({ simulator, token }) => {
    simulator.revokeToken(token.current);
    return { end: () => simulator.addToken({ name: CREDENTIAL, token: token.current }) };
  },
  scope_lost: ({ simulator }) => {
    simulator.setAccess(CREDENTIAL, { scopes: ['orgs/other'] });
    return { end: () => simulator.setAccess(CREDENTIAL, { scopes: ['*'] }) };
  },
  webhooks_lost: switched({ kind: 'webhook_lost', probability: 0.7 }),
  webhooks_doubled: switched({ kind: 'webhook_doubled' }),
  webhooks_late: switched({ kind: 'webhook_delayed', ms: 5_000 }),
  webhooks_shuffled: (world, planned) => {
    const { end } = switched({ kind: 'webhook_shuffled', of: 5 })(world, planned) as {
      end: () => void;
    };
    return {
      end: () => {
        end();
        world.simulator.releaseWebhooks();
      },
    };
  },
} satisfies Record<string, Fault>;
