import { ApplicationFailure } from '@temporalio/workflow';
import type { Parsed } from './inputFields.ts';

/** @throws ApplicationFailure `InvalidInput` (non-retryable), naming every bad field */
export function validated<T>(parsed: Parsed<T>): T {
  if (parsed.ok) return parsed.spec;
  const errors = parsed.errors.map(({ field, message }) => `${field} ${message}`);
  throw ApplicationFailure.nonRetryable(`Invalid input: ${errors.join('; ')}`, 'InvalidInput', parsed.errors);
}
