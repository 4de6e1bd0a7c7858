/** Names with `*`, for our own check and for Kubernetes' (RE2, https://github.com/google/re2/wiki/Syntax) alike. Pure. */

/** A regular expression that matches exactly the texts that one of the patterns covers. */
export function patternSource(patterns: readonly string[]): string {
  const each = patterns.map((pattern) =>
    pattern
      .split('*')
      .map((text) => text.replaceAll(/[\\^$.|?+()[\]{}]/g, String.raw`\$&`))
      .join('.*'),
  );
  return `^(?:${each.join('|')})$`;
}

/**
 * Does one of the patterns cover the name? Not by that regular expression: where a pattern has several `*`, a name can be written that keeps
 * JavaScript's busy for minutes, and names are the starter's.
 * @throws TypeError when it is no text, as a pod's author may have written it
 */
export function matchesAny(patterns: readonly string[], name: string): boolean {
  if (typeof name !== 'string') throw new TypeError('a name that is no text');
  return patterns.some((pattern) => isCoveredBy(pattern.split('*'), name));
}

/** @param texts - what stands between the `*` */
function isCoveredBy([first = '', ...others]: readonly string[], name: string): boolean {
  const last = others.pop();
  if (last === undefined) return name === first;
  if (!name.startsWith(first)) return false;
  // Each where it comes first: that leaves the most room for those after it.
  let at = first.length;
  for (const text of others) {
    const found = name.indexOf(text, at);
    if (found < 0) return false;
    at = found + text.length;
  }
  return name.length - at >= last.length && name.endsWith(last);
}
