/** Writes sets as YAML, with their notes as comments at the fields. Pure. */
import { Document, isMap, isNode, isScalar, isSeq, Scalar, visit } from 'yaml';
import { escapeControlCharacters } from '../../core/domain/displayText.ts';
import type { MigratedSet } from './convertArc.ts';
import type { MigrationNote } from './setDraft.ts';
import { setDocuments, type SetDocument, type SetFormat } from './setFormats.ts';

const WIDTH = 140;
/** YAML node that can have a comment before it. */
interface Commented {
  commentBefore?: string | null | undefined;
}

/**
 * Returns whether `escaped` would change the text. Only a string in double quotes keeps its meaning
 * then.
 */
const needsQuotes = (text: string): boolean =>
  escapeControlCharacters(text.replaceAll('\n', '')) !== text.replaceAll('\n', '');

/**
 * Returns the sets as YAML.
 * @param head - lines of the comment at the beginning
 */
export function setsYaml(
  sets: readonly MigratedSet[],
  head: readonly string[],
  format: SetFormat = 'sets',
): string {
  const first = head
    .map((line) => comment(line, 3))
    .join('\n')
    .replaceAll(/^/gm, '#');
  const inputs = sets.map(({ input }) => input);
  let written = 0;
  const texts = setDocuments(inputs, format).map((document) => {
    const start = written;
    written += document.places.length;
    return documentText(document, sets.slice(start, written));
  });
  return `${[first, ...texts].join('\n---\n')}\n`;
}

/**
 * Adds the notes of the sets as comments.
 * @param sets - sets of the document, in its order
 */
function documentText({ value, places }: SetDocument, sets: readonly MigratedSet[]): string {
  const document = new Document(value);
  visit(document, {
    Scalar(_key, node) {
      if (typeof node.value === 'string' && needsQuotes(node.value))
        node.type = Scalar.QUOTE_DOUBLE;
    },
  });
  const comments = new Map<Commented, string[]>();
  for (const [index, set] of sets.entries()) {
    const { start = [], set: base = [] } = places[index] ?? {};
    for (const note of set.notes) {
      const place = placeOf(document, [...base, ...note.at]);
      comments.set(place, [...(comments.get(place) ?? []), textOf(note)]);
    }
    const place = startOf(document, start);
    comments.set(place, [originOf(set), ...(comments.get(place) ?? [])]);
  }
  for (const [place, lines] of comments)
    place.commentBefore = lines.map((line) => comment(line, 3)).join('\n');
  // Remove only the last newline: the one before may be part of a value.
  return document
    .toString({ lineWidth: 0 })
    .replace(/\n$/, '')
    .split('\n')
    .map(escapeControlCharacters)
    .join('\n');
}

/** Returns the node of a set: the document, or an item of its list. */
function startOf(document: Document, path: readonly (string | number)[]): Commented {
  const node = path.length === 0 ? document : document.getIn(path, true);
  return isNode(node) ? node : document;
}

function originOf({ from, autoscaler }: MigratedSet): string {
  const objects = [from, ...(autoscaler === undefined ? [] : [autoscaler])];
  return `From ${objects.map(({ label }) => label).join('; size from ')}`;
}

const textOf = ({ field, text, needsDecision }: MigrationNote): string =>
  `${needsDecision ? 'DECIDE: ' : ''}${field}: ${text}`;

/**
 * Returns the key at the end of a path. If the path does not exist, returns its deepest existing
 * part; for an empty path, the document.
 */
function placeOf(document: Document, path: readonly (string | number)[]): Commented {
  let place: Commented = document;
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

/** Returns a text as comment lines, wrapped, with continuation lines indented. */
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
