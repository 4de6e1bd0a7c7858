/**
 * Names with the wildcard `*`, for the check in this process and for that of Kubernetes (RE2,
 * https://github.com/google/re2/wiki/Syntax). Pure.
 */

/** Returns a regular expression that matches exactly the names that one of the patterns matches. */
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
 * Returns whether one of the patterns matches the name. It does not use the regular expression: for
 * a pattern with several `*`, someone could choose a name that keeps JavaScript's engine busy for
 * minutes.
 * @throws TypeError if the name is not a string, which the author of a pod may have written
 */
export function matchesAny(patterns: readonly string[], name: string): boolean {
  if (typeof name !== 'string') throw new TypeError('a name that is not a string');
  return patterns.some((pattern) => isCoveredBy(pattern.split('*'), name));
}

/**
 * Returns whether a pattern matches a name.
 * @param texts - parts of the pattern between the `*`
 */
function isCoveredBy([first = '', ...others]: readonly string[], name: string): boolean {
  const last = others.pop();
  if (last === undefined) return name === first;
  if (!name.startsWith(first)) return false;
  // Take the first occurrence of each part, which leaves the most room for the parts after it.
  let at = first.length;
  for (const text of others) {
    const found = name.indexOf(text, at);
    if (found < 0) return false;
    at = found + text.length;
  }
  return name.length - at >= last.length && name.endsWith(last);
}
