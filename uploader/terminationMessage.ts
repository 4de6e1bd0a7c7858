/** The uploader's last line for the kubelet, which keeps 4 KiB for all containers of a pod. Pure. */

/** In bytes of UTF-8. */
export const MAX_TERMINATION_MESSAGE = 1_024;
/** Of a text in it, in bytes: one alone always fits. */
const MAX_TEXT = 512;
/** Of the name of a file in it, in bytes. */
const MAX_PATH = 128;

/**
 * Shortens what the uploader says to one line of JSON that fits: what went wrong first, then how many files were left out, then as many of their
 * names as there is room for.
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

/** Cuts a text so that its JSON has at most so many bytes. */
function cut(text: string, maxBytes: number): string {
  const fits = (it: string): boolean => Buffer.byteLength(JSON.stringify(it)) - 2 <= maxBytes;
  if (fits(text)) return text;
  // No more of it can fit. Code points stay whole.
  const points = Array.from(text.slice(0, maxBytes));
  while (!fits(`${points.join('')}…`)) points.pop();
  return `${points.join('')}…`;
}
