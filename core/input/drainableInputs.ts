/** What is left of a runner's input that a worker's rules do not accept any more. Pure. */
import type { RunnerInput } from '../contract/index.ts';

/** Fields of what runs in the pod, which a runner that drains has already. */
const POD_FIELDS = [
  'image', 'command', 'args', 'env', 'pod', 'proxy', 'ca', 'storage', 'untrusted', 'supervisor',
] as const satisfies (keyof RunnerInput)[]; // prettier-ignore

/** Fields that say which runner it is, and where. */
const IDENTITY_FIELDS = [
  'organization', 'repository', 'enterprise', 'ciServer', 'credential', 'name', 'labels', 'set', 'job', 'ephemeral', 'namespace',
] as const satisfies (keyof RunnerInput)[]; // prettier-ignore

/**
 * The inputs with which such a runner may be drained, the most complete first. None of them can make anything: what they would have deleted or
 * removed is checked again where that is done.
 */
export function drainableInputs(input: object): object[] {
  const entries = Object.entries(input);
  const without = (fields: readonly string[]): object =>
    Object.fromEntries(entries.filter(([name]) => !fields.includes(name)));
  // A plain command has to name one, which is never run.
  const command = 'ciServer' in input && input.ciServer === 'none' ? { command: ['true'] } : {};
  return [
    { ...without(POD_FIELDS), ...command },
    {
      ...Object.fromEntries(
        entries.filter(([name]) => IDENTITY_FIELDS.some((field) => field === name)),
      ),
      ...command,
    },
  ];
}
