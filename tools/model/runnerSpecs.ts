/** The specifications of the runners in the model. */
import { parseRunnerInput, type RunnerSpec } from '../../core/input/runner.ts';
import type { Setup } from './state.ts';

const common = { name: 'm' } as const;
/** The input of each kind of runner, as a user writes it. */
const INPUTS: Readonly<Record<Setup, object>> = {
  ephemeral: { ...common, organization: 'acme' },
  'ephemeral, no supervisor': { ...common, organization: 'acme', supervisor: 'none' },
  'ephemeral, replace': { ...common, organization: 'acme', onEviction: 'replace' },
  static: { ...common, organization: 'acme', ephemeral: false },
  'static, no supervisor': {
    ...common,
    organization: 'acme',
    ephemeral: false,
    supervisor: 'none',
  },
  command: { ...common, ciServer: 'none', image: 'i', command: ['work'] },
  'checkpointing command': {
    ...common,
    ciServer: 'none',
    image: 'i',
    command: ['work'],
    onTerm: 'checkpoint',
    onEviction: 'resume',
    volumeClaims: [{ name: 'state', mountPath: '/state', storage: '1Gi' }],
  },
};

/**
 * Returns the specification of a kind of runner.
 * @throws Error if its input is invalid
 */
export function runnerSpec(setup: Setup): RunnerSpec {
  const parsed = parseRunnerInput(INPUTS[setup], { nameHash: '0a1b2' });
  if (!parsed.ok)
    throw new Error(`invalid input of the runner "${setup}": ${JSON.stringify(parsed.errors)}`);
  return parsed.spec;
}
