import type { SetCommandInput } from '../../core/contract/index.ts';
import { parseSetCommandInput } from '../../core/input/setCommand.ts';
import { invalidInput } from '../shared/invalidInput.ts';

/** The first step of a command to a set: see admit.ts. @throws ApplicationFailure `InvalidInput` (non-retryable), naming every bad field */
export function admitSetCommand(input: unknown): SetCommandInput {
  const parsed = parseSetCommandInput(input);
  if (!parsed.ok) throw invalidInput(parsed.errors);
  return parsed.spec;
}
