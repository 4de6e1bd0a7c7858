/** Reduces the input of a runner that a worker's rules no longer accept. Pure. */
import type { RunnerInput } from '../contract/index.ts';

/** Fields about the content of the pod. A draining runner already has its pod. */
const POD_FIELDS = [
  'image', 'command', 'args', 'env', 'pod', 'proxy', 'ca', 'storage', 'untrusted', 'supervisor',
] as const satisfies (keyof RunnerInput)[]; // prettier-ignore

/** Fields that identify the runner and its location. */
const IDENTITY_FIELDS = [
  'organization', 'repository', 'enterprise', 'ciServer', 'credential', 'name', 'labels', 'set', 'job', 'ephemeral', 'namespace',
  'demand', 'scaleSet',
] as const satisfies (keyof RunnerInput)[]; // prettier-ignore

/**
 * Returns the inputs with which such a runner may be drained, most complete first. None of them can
 * create anything. Every deletion and removal is checked again where it is done.
 */
export function drainableInputs(input: object): object[] {
  const entries = Object.entries(input);
  const without = (fields: readonly string[]): object =>
    Object.fromEntries(entries.filter(([name]) => !fields.includes(name)));
  // A plain command requires a command, which is never run here.
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
