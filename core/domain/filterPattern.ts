/**
 * Filter patterns of GitHub for branches and paths:
 * https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-syntax#filter-pattern-cheat-sheet
 *
 * Glob libraries interpret `?`, `+` and `**` within a segment differently. In GitHub, the first two
 * apply to the preceding character, and `**` matches any number of directories. Regular expressions
 * are not used, because the text is untrusted and matching must not take long. Pure.
 */

/** Element of a pattern: the characters that it matches, and their number. */
interface Token {
  readonly takes: (character: string) => boolean;
  readonly least: 0 | 1;
  readonly many: boolean;
  /**
   * Number of tokens, including this one, that may be skipped together.
   * @default 1 if `least` is 0
   */
  readonly skips?: number;
}

const ANY = (): boolean => true;
const WITHIN = (character: string): boolean => character !== '/';
/** Token before the two tokens of `**` and `/`. With it, they may match nothing together. */
const FOLDERS: Token = { takes: () => false, least: 0, many: false, skips: 3 };

/** Maximum length of a text (characters). A longer text matches nothing. */
const MAX_TEXT = 4_096;

/**
 * Returns whether the pattern matches the text. Takes time proportional to the length of the text
 * times that of the pattern.
 * @param pattern - valid according to {@link patternError}
 */
export function matchesPattern(pattern: string, text: string): boolean {
  if (text.length > MAX_TEXT) return false;
  const tokens = readPattern(pattern);
  let states = reach(tokens, new Set([0]));
  for (const character of text) {
    const next = new Set<number>();
    for (const at of states) {
      const token = tokens[at];
      if (token?.takes(character) !== true) continue;
      next.add(at + 1);
      if (token.many) next.add(at);
    }
    if (next.size === 0) return false;
    states = reach(tokens, next);
  }
  return states.has(tokens.length);
}

/** Returns why a text is not a valid pattern, or `undefined` if it is valid. */
export function patternError(pattern: string): string | undefined {
  if (pattern === '') return 'is empty';
  if (pattern.startsWith('!'))
    return 'must not begin with "!", which excludes nothing here; write "\\!" for the character itself';
  if (/^[?+]/.test(pattern))
    return 'must not begin with "?" or "+", which repeat the character before; write "\\?" for the character itself';
  const open = pattern.replaceAll(/\\./gs, '').replaceAll(/\[[^\]]+\]/g, '');
  if (open.includes('[')) return 'has a "[" without its "]"; write "\\[" for the character itself';
  return undefined;
}

/** Adds all positions that can be reached without another character. */
function reach(tokens: readonly Token[], from: ReadonlySet<number>): Set<number> {
  const reached = new Set(from);
  for (const at of reached) {
    const token = tokens[at];
    if (token === undefined) continue;
    if (token.least === 0) reached.add(at + 1);
    if (token.skips !== undefined) reached.add(at + token.skips);
  }
  return reached;
}

function readPattern(pattern: string): Token[] {
  const tokens: Token[] = [];
  for (let rest = pattern; rest !== '';) {
    const [read = '', star, escape, set, sign] =
      /^(?:(\*+)|\\(.)|\[([^\]]+)\]|([?+])|.)/s.exec(rest) ?? [];
    const isFolder =
      star !== undefined &&
      star.length > 1 &&
      rest[read.length] === '/' &&
      (tokens.length === 0 || pattern[pattern.length - rest.length - 1] === '/');
    const last = tokens.at(-1);
    if (star !== undefined)
      tokens.push(...(isFolder ? [FOLDERS] : []), {
        takes: star.length > 1 ? ANY : WITHIN,
        least: 0,
        many: true,
      });
    else if (sign !== undefined && last !== undefined)
      tokens.splice(-1, 1, sign === '?' ? { ...last, least: 0 } : { ...last, many: true });
    else if (set !== undefined) tokens.push({ takes: inSet(set), least: 1, many: false });
    else tokens.push({ takes: is(escape ?? read), least: 1, many: false });
    rest = rest.slice(read.length);
  }
  return tokens;
}

const is =
  (wanted: string) =>
  (character: string): boolean =>
    character === wanted;

/** Parses a set such as `0-9a-f`. */
function inSet(set: string): Token['takes'] {
  const ranges = [...set.matchAll(/(.)-(.)|(.)/gs)].map(
    ([, from, to, single = '']) => [from ?? single, to ?? single] as const,
  );
  return (character) => ranges.some(([from, to]) => character >= from && character <= to);
}
