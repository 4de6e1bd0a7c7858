/** The part of a pino logger that activities use. */
export interface Logger {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
}

/** The part of a pino logger that the adapters of CI servers use. */
export interface RequestLogger {
  debug(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}
