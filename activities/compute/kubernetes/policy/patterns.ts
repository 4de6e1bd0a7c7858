/** Names with `*`, for our own check and for Kubernetes' (RE2, https://github.com/google/re2/wiki/Syntax) alike. Pure. */

/** A regular expression that matches exactly the texts that one of the patterns covers. */
export function patternSource(patterns: readonly string[]): string {
  const each = patterns.map((pattern) => pattern.split('*').map((text) => text.replaceAll(/[\\^$.|?+()[\]{}]/g, String.raw`\$&`)).join('.*'));
  return `^(?:${each.join('|')})$`;
}

/** Does one of the patterns cover the name? @throws TypeError when it is no text, as a pod's author may have written it */
export function covered(patterns: readonly string[], name: string): boolean {
  if (typeof name !== 'string') throw new TypeError('a name that is no text');
  return patterns.length > 0 && new RegExp(patternSource(patterns), 's').test(name);
}
