/**
 * Formats the uploader's last line for the kubelet, which keeps 4 KiB for all containers of a pod.
 * Pure.
 */

/** Maximum size of the message (bytes of UTF-8). */
export const MAX_TERMINATION_MESSAGE = 1_024;
/** Maximum size of a text in the message (bytes). A single text always fits. */
const MAX_TEXT = 512;
/** Maximum size of a file name in the message (bytes). */
const MAX_PATH = 128;

/**
 * Shortens the record to one line of JSON that fits: first the error, then the number of skipped
 * files, then as many of their names as fit.
 */
export function terminationMessage(record: object): string {
  const { skippedFiles = [], ...said } = record as { readonly skippedFiles?: readonly string[] };
  const short = Object.fromEntries(
    Object.entries(said).map(([name, value]) => [
      name,
      typeof value === 'string' ? cut(value, MAX_TEXT) : value,
    ]),
  );
  if (skippedFiles.length === 0) return line(short);
  const counted = { ...short, skipped: skippedFiles.length };
  const named: string[] = [];
  for (const path of skippedFiles.map((each) => cut(each, MAX_PATH))) {
    const longer = line({ ...counted, skippedFiles: [...named, path] });
    if (Buffer.byteLength(longer) > MAX_TERMINATION_MESSAGE) break;
    named.push(path);
  }
  return line(named.length === 0 ? counted : { ...counted, skippedFiles: named });
}

const line = (said: object): string => `${JSON.stringify(said)}\n`;

/** Shortens a text so that its JSON has at most this many bytes. */
function cut(text: string, maxBytes: number): string {
  const fits = (it: string): boolean => Buffer.byteLength(JSON.stringify(it)) - 2 <= maxBytes;
  if (fits(text)) return text;
  // More than this can never fit. Code points stay whole.
  const points = Array.from(text.slice(0, maxBytes));
  while (!fits(`${points.join('')}…`)) points.pop();
  return `${points.join('')}…`;
}
