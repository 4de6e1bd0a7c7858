/** Exit statuses of `holdfast`, and the error with an exit status. */
import type { InputErrorCode } from '../../core/contract/index.ts';

/** Exit statuses of every command. Documented in docs/cli.md and in `holdfast --help`. */
export const EXIT = {
  ok: 0,
  /** The command failed, or the runner's outcome was not `succeeded`. */
  failed: 1,
  /** Invalid usage, input or settings. The command did nothing. */
  usage: 2,
  /** The runner does not exist or has already ended. */
  notFound: 3,
  /** Temporal does not answer. */
  unreachable: 4,
  /** A runner with this id exists already. */
  conflict: 5,
  /** Interrupted: 128 plus the number of the signal. */
  sighup: 129,
  sigint: 130,
  sigterm: 143,
} as const;

/** Kind of a command error. It determines the exit status. */
export type ErrorCode =
  'failed' | 'usage' | 'invalid_input' | 'not_found' | 'unreachable' | 'conflict' | 'interrupted';

/** Invalid field of an input. */
export interface FieldError {
  /** Code of the error. Absent if the field is not part of the contract's inputs. */
  readonly code?: InputErrorCode;
  readonly field: string;
  readonly message: string;
}

const STATUS: Readonly<Record<ErrorCode, number>> = {
  failed: EXIT.failed,
  usage: EXIT.usage,
  invalid_input: EXIT.usage,
  not_found: EXIT.notFound,
  unreachable: EXIT.unreachable,
  conflict: EXIT.conflict,
  interrupted: EXIT.sigint,
};

/** Error for the user: one line with what happened, the runner or setting, and the fix. */
export class CliError extends Error {
  override readonly name = 'CliError';
  readonly code: ErrorCode;
  readonly fields: readonly FieldError[] | undefined;

  constructor(
    code: ErrorCode,
    message: string,
    more: { fields?: readonly FieldError[]; cause?: unknown } = {},
  ) {
    super(message, { cause: more.cause });
    this.code = code;
    this.fields = more.fields;
  }

  get exitStatus(): number {
    return STATUS[this.code];
  }
}
