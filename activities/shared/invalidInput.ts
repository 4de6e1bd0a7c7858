import { ApplicationFailure } from '@temporalio/common';
import { FAILURE_TYPES } from '../../core/activities/index.ts';
import type { InputError } from '../../core/contract/index.ts';
import { applicationFailure } from './failures.ts';

/** Returns a non-retryable failure for invalid input. Its details are the codes and fields. */
export function invalidInput(errors: readonly InputError[]): Error {
  return applicationFailure(
    `Invalid input: ${errors.map(({ field, message }) => `${field} ${message}`.trim()).join('; ')}`,
    FAILURE_TYPES.invalidInput,
    { final: true, details: errors.map(({ code, field }) => ({ code, field })) },
  );
}

/** Whether the error is a failure of {@link invalidInput}. */
export function isInvalidInput(error: unknown): boolean {
  return error instanceof ApplicationFailure && error.type === FAILURE_TYPES.invalidInput;
}
