/** Headers of a request as in Node, with names in lower case. */
export type Headers = Readonly<Record<string, string | string[] | undefined>>;

/** Returns the header, truncated for logs. Empty if it is absent or a list. */
export function header(headers: Headers, name: string): string {
  const value = headers[name];
  return typeof value === 'string' ? value.slice(0, 101) : '';
}
