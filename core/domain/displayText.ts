/** How text from outside is shown: what a pod, a job's name, a label or a CI server says is data, wherever people read it. Pure. */

// Cc: C0 and C1 controls (ESC included). The others turn the direction of text, or are invisible: names made to look like other names.
const UNPRINTABLE =
  /[\p{Cc}\u00AD\u061C\u200B-\u200F\u2028-\u202E\u2060-\u2069\uFEFF\u{E0000}-\u{E007F}]/gu;

/** What has a meaning within a line of Markdown: https://spec.commonmark.org/0.31.2/#inlines, tables of https://github.github.com/gfm/, and `{…}`, which Temporal's UI fills in. */
const MARKDOWN = /[\\`*_{}[\]<>|~&$]/g;

/** Of a text in Markdown, in characters: Temporal's UI puts all of a page into an address. */
const MAX_MARKDOWN = 500;

/** For a terminal: without control characters and invisible or direction-changing ones; line breaks and tabs become spaces. */
export function stripControlCharacters(text: string): string {
  return text.replaceAll(/\s+/g, ' ').replaceAll(UNPRINTABLE, '').trim();
}

/** For a log: such characters as JSON writes them (`\n`, `\u001b`), so that nothing is lost, and a line stays one. */
export function escapeControlCharacters(text: string): string {
  return text.replaceAll(UNPRINTABLE, (character) =>
    character < ' ' ? JSON.stringify(character).slice(1, -1) : codeUnits(character),
  );
}

/** For a line or a table's cell of Markdown: as it reads, with neither links nor HTML nor code; cut if long. An address is at most a link to what it says. */
export function escapeMarkdown(text: string): string {
  return truncate(stripControlCharacters(text), MAX_MARKDOWN).replaceAll(MARKDOWN, '\\$&');
}

/** `s` shortened to `width` characters, the last one an ellipsis. */
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
