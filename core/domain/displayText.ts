/**
 * Makes external text safe to show. The texts of a pod, a job name, a label or a CI server are
 * untrusted. Pure.
 */

// Cc: C0 and C1 control characters (including ESC). The others change the direction of text or are
// invisible, and make names look like other names.
const UNPRINTABLE =
  /[\p{Cc}\u00AD\u061C\u200B-\u200F\u2028-\u202E\u2060-\u2069\uFEFF\u{E0000}-\u{E007F}]/gu;

/**
 * Characters with a meaning in a line of Markdown: https://spec.commonmark.org/0.31.2/#inlines,
 * tables of https://github.github.com/gfm/, and `{…}`, which Temporal's UI expands.
 */
const MARKDOWN = /[\\`*_{}[\]<>|~&$]/g;

/**
 * Maximum length of a text in Markdown (characters). Temporal's UI puts a whole page into a URL.
 */
const MAX_MARKDOWN = 500;

/**
 * Formats a text for a terminal: removes control characters and invisible or direction-changing
 * ones; line breaks and tabs become spaces.
 */
export function stripControlCharacters(text: string): string {
  return text.replaceAll(/\s+/g, ' ').replaceAll(UNPRINTABLE, '').trim();
}

/**
 * Formats a text for a log: escapes such characters as JSON does (`\n`, `\u001b`), so that nothing
 * is lost and a line stays one line.
 */
export function escapeControlCharacters(text: string): string {
  return text.replaceAll(UNPRINTABLE, (character) =>
    character < ' ' ? JSON.stringify(character).slice(1, -1) : codeUnits(character),
  );
}

/**
 * Formats a text for a line or a table cell in Markdown. It appears literally, without HTML or
 * code, and is truncated if it is long. A URL becomes at most a link to itself.
 */
export function escapeMarkdown(text: string): string {
  return truncate(stripControlCharacters(text), MAX_MARKDOWN).replaceAll(MARKDOWN, '\\$&');
}

/** Truncates a text to `width` characters, of which the last is an ellipsis. */
export function truncate(s: string, width: number): string {
  const characters = Array.from(s);
  return characters.length <= width
    ? s
    : `${characters.slice(0, Math.max(0, width - 1)).join('')}…`;
}

const codeUnits = (character: string): string =>
  Array.from(
    { length: character.length },
    (_, at) => `\\u${character.charCodeAt(at).toString(16).padStart(4, '0')}`,
  ).join('');
