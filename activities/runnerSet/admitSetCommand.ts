import type { SetCommandInput } from '../../core/contract/index.ts';
import { parseSetCommandInput } from '../../core/input/setCommand.ts';
import { invalidInput } from '../shared/invalidInput.ts';

/**
 * Checks the input of a command to a set; see activities/runner/admit.ts.
 * @throws ApplicationFailure `InvalidInput` (non-retryable), which lists every invalid field
 */
export function admitSetCommand(input: unknown): SetCommandInput {
  const parsed = parseSetCommandInput(input);
  if (!parsed.ok) throw invalidInput(parsed.errors);
  return parsed.spec;
}
