/** The runners of which the model tells, as somebody would ask for them. */
import { parseRunnerInput, type RunnerSpec } from '../../core/input/runner.ts';
import type { Setup } from './state.ts';

const common = { name: 'm' } as const;
const INPUTS: Readonly<Record<Setup, object>> = {
  ephemeral: { ...common, organization: 'acme' },
  'ephemeral, silent': { ...common, organization: 'acme', supervisor: 'none' },
  'ephemeral, to be replaced': { ...common, organization: 'acme', onEviction: 'replace' },
  static: { ...common, organization: 'acme', ephemeral: false },
  'static, silent': { ...common, organization: 'acme', ephemeral: false, supervisor: 'none' },
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

/** @throws Error when such a runner would be refused */
export function specOf(setup: Setup): RunnerSpec {
  const parsed = parseRunnerInput(INPUTS[setup], { nameHash: '0a1b2' });
  if (!parsed.ok)
    throw new Error(`the model gives a runner that is refused: ${JSON.stringify(parsed.errors)}`);
  return parsed.spec;
}
