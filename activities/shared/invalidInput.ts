import { ApplicationFailure } from '@temporalio/common';
import { FAILURE_TYPES } from '../../core/activities/index.ts';
import type { InputError } from '../../core/input/fields.ts';
import { applicationFailure } from './failures.ts';

/** Returns the failure of input that no retry makes better. */
export function invalidInput(errors: readonly InputError[]): Error {
  return applicationFailure(
    `Invalid input: ${errors.map(({ field, message }) => `${field} ${message}`.trim()).join('; ')}`,
    FAILURE_TYPES.invalidInput,
    { final: true },
  );
}

/** Whether the error is such a failure. */
export function isInvalidInput(error: unknown): boolean {
  return error instanceof ApplicationFailure && error.type === FAILURE_TYPES.invalidInput;
}
