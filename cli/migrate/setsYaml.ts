/** Sets as YAML for `holdfast set apply`, with a comment at each field that has something to be said of. Pure. */
import { Document, isMap, isNode, isScalar, isSeq, Scalar, visit } from 'yaml';
import { escapeControlCharacters } from '../../core/domain/displayText.ts';
import type { MigratedSet } from './convertArc.ts';
import type { MigrationNote } from './setDraft.ts';

const WIDTH = 140;
/** What `escaped` may write otherwise: only a string in double quotes says the same then. */
const needsQuotes = (text: string): boolean =>
  escapeControlCharacters(text.replaceAll('\n', '')) !== text.replaceAll('\n', '');

/** @param head - lines that come first, as comments */
export function setsYaml(sets: readonly MigratedSet[], head: readonly string[]): string {
  const first = head
    .map((line) => comment(line, 3))
    .join('\n')
    .replaceAll(/^/gm, '#');
  return `${[first, ...sets.map(setText)].join('\n---\n')}\n`;
}

function setText({ input, notes, from, autoscaler }: MigratedSet): string {
  const document = new Document(input);
  visit(document, {
    Scalar(_key, node) {
      if (typeof node.value === 'string' && needsQuotes(node.value))
        node.type = Scalar.QUOTE_DOUBLE;
    },
  });
  const places = new Map<{ commentBefore?: string | null | undefined }, string[]>();
  for (const note of notes) {
    const place = placeOf(document, note.at);
    places.set(place, [...(places.get(place) ?? []), textOf(note)]);
  }
  const origin = [from, autoscaler]
    .flatMap((object) => (object === undefined ? [] : [object.label]))
    .join('; size from ');
  places.set(document, [`From ${origin}`, ...(places.get(document) ?? [])]);
  for (const [place, lines] of places)
    place.commentBefore = lines.map((line) => comment(line, 3)).join('\n');
  // Not more than the last line's end: the one before it may be a value's own.
  return document
    .toString({ lineWidth: 0 })
    .replace(/\n$/, '')
    .split('\n')
    .map(escapeControlCharacters)
    .join('\n');
}

const textOf = ({ field, text, needsDecision }: MigrationNote): string =>
  `${needsDecision ? 'DECIDE: ' : ''}${field}: ${text}`;

/** The key at the end of a path; or the deepest part of it that is written; at the beginning the document itself. */
function placeOf(
  document: Document,
  path: readonly (string | number)[],
): { commentBefore?: string | null | undefined } {
  let place: { commentBefore?: string | null | undefined } = document;
  let node: unknown = document.contents;
  for (const part of path) {
    if (isSeq(node) && typeof part === 'number') {
      node = node.items[part];
      continue;
    }
    const pair = isMap(node)
      ? node.items.find(({ key }) => isScalar(key) && key.value === part)
      : undefined;
    if (pair === undefined) break;
    if (isNode(pair.key)) place = pair.key;
    node = pair.value;
  }
  return place;
}

/** Wrapped, each line after a space; those that go on are indented. */
function comment(text: string, indent: number): string {
  const lines = [''];
  for (const word of escapeControlCharacters(text).split(' ')) {
    const line = lines.at(-1) ?? '';
    if (line !== '' && line.length + word.length >= WIDTH)
      lines.push(`${' '.repeat(indent)}${word}`);
    else lines[lines.length - 1] = line === '' ? ` ${word}` : `${line} ${word}`;
  }
  return lines.join('\n');
}
