/** Much longer is no message: it would fill a history, a log or a terminal. In characters. */
const LONGEST = 2_000;

/** Matches messages of the JavaScript engine about bugs. A user cannot act on them. */
const ENGINE =
  /\[object Object\]|Cannot (?:read|set) properties of|is not (?:a function|iterable)|Maximum call stack|Invalid time value|Cannot mix BigInt|Cannot convert .* to a BigInt/;

/** @throws Error when this is no message for a person: empty, endless, or the engine's own */
export function assertReadableMessage(message: string, who: string): void {
  if (message.trim() === '') throw new Error(`${who}: an error without a message`);
  if (message.length > LONGEST)
    throw new Error(`${who}: a message of ${message.length} characters: ${message.slice(0, 200)}…`);
  if (ENGINE.test(message))
    throw new Error(`${who}: a message of the engine's: ${message.slice(0, 500)}`);
}
