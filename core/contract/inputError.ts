/** Errors of rejected inputs. */

/**
 * Kinds of errors of an input.
 *
 * - `required`: the field is missing.
 * - `unknown_field`: no field has this name.
 * - `invalid`: the value has the wrong type or the wrong form.
 * - `out_of_range`: the value is too small, too large, too long, or over a cap.
 * - `conflict`: the field contradicts another field.
 * - `duplicate`: the value is used twice.
 * - `not_applicable`: the field has no effect together with the other fields.
 * - `reserved`: only Holdfast itself sets the field.
 * - `denied`: the value is not allowed here, for example for an untrusted change.
 * - `rejected_payload`: the worker's codec rejected the payload.
 */
export const INPUT_ERROR_CODES = [
  'required',
  'unknown_field',
  'invalid',
  'out_of_range',
  'conflict',
  'duplicate',
  'not_applicable',
  'reserved',
  'denied',
  'rejected_payload',
] as const;

/** One of {@link INPUT_ERROR_CODES}. */
export type InputErrorCode = (typeof INPUT_ERROR_CODES)[number];

/** An error of an input: its kind, the field, what is wrong, and the fix. */
export interface InputError {
  readonly code: InputErrorCode;
  /** Path of the field, its parts separated by dots. */
  readonly field: string;
  /** Description of the error, and the fix. Continues a sentence that begins with the field. */
  readonly message: string;
}
