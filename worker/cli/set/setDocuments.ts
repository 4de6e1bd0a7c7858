/** The documents of `holdfast set apply -f`: YAML, of several documents or with lists in them, or JSON. */
import { isAlias, isNode, LineCounter, parseAllDocuments, type Document, type Node } from 'yaml';
import { CliError, type FieldError } from '../terminal/exit.ts';

/** One set, as it is written; not validated. */
export interface SetDocument {
  /** For messages: `document 2 (linux)`, `document 1, item 3`. */
  readonly label: string;
  readonly value: unknown;
  /** The line where a field of it stands, counted from 1; of what is missing, the line of what it is missing from. @param field - `template.labels.0` */
  readonly lineOf: (field: string) => number;
}

/** Uses of one anchor, those within others multiplied: hundreds of sets may share a template, and a bomb is found out. */
const MAX_ALIASES = 10_000;

/**
 * Splits a file into its documents. Empty ones do not count; the items of a list count as documents.
 * @param shown - the file's name, for messages
 * @throws CliError `invalid_input`, with everything that is no YAML
 */
export function readSetDocuments(text: string, shown: string): SetDocument[] {
  const lines = new LineCounter();
  const documents = parse(text, lines, shown);
  const faults = documents.flatMap((document, index) => document.errors.map(({ message }) => ({ field: `document ${index + 1}`, message: faultIn(message) })));
  if (faults.length > 0) throw notYaml(shown, faults);
  const found = documents.flatMap((document, index) => split(document, index + 1, lines, shown));
  if (found.length === 0) throw new CliError('invalid_input', `${shown} holds no set: write name, a template, and replicas or minIdle and max; see "holdfast set apply --help"`);
  return found;
}

function parse(text: string, lineCounter: LineCounter, shown: string): Document.Parsed[] {
  try {
    // `<<: *base` is how people share one template between sets.
    const parsed = parseAllDocuments(text, { lineCounter, merge: true, version: '1.2' });
    return Array.isArray(parsed) ? parsed : [];
  } catch (error) {
    // The parser tells what is wrong; it throws when it can go no deeper.
    if (error instanceof RangeError) throw notYaml(shown, [{ field: 'input', message: faultIn(error.message) }]);
    throw error;
  }
}

function split(document: Document.Parsed, number: number, lines: LineCounter, shown: string): SetDocument[] {
  let value: unknown;
  try {
    value = document.toJS({ maxAliasCount: MAX_ALIASES });
  } catch (error) {
    // Aliases of aliases, grown beyond all measure.
    throw notYaml(shown, [{ field: `document ${number}`, message: faultIn(error instanceof Error ? error.message : String(error)) }]);
  }
  if (value === null || value === undefined) return [];
  const lineAt = (path: readonly string[]): number => lines.linePos(startOf(document, path)).line;
  if (!Array.isArray(value)) return [{ label: labelOf(`document ${number}`, value), value, lineOf: (field) => lineAt(field.split('.')) }];
  return value.map((item: unknown, index) => ({
    label: labelOf(`document ${number}, item ${index + 1}`, item),
    value: item,
    lineOf: (field) => lineAt([String(index), ...field.split('.')]),
  }));
}

function labelOf(place: string, value: unknown): string {
  const name = value !== null && typeof value === 'object' && 'name' in value ? value.name : undefined;
  return typeof name === 'string' && name !== '' ? `${place} (${name})` : place;
}

/** Where the deepest part of a path begins that is written there. */
function startOf(document: Document.Parsed, path: readonly string[]): number {
  let start = document.contents?.range?.[0] ?? document.range[0];
  for (let depth = 1; depth <= path.length; depth++) {
    const keys = path.slice(0, depth).map((key) => (/^\d+$/.test(key) ? Number(key) : key));
    const node = nodeAt(document, keys);
    if (node === undefined) break;
    start = node.range?.[0] ?? start;
  }
  return start;
}

function nodeAt(document: Document.Parsed, path: readonly (string | number)[]): Node | undefined {
  const node = document.hasIn(path) ? document.getIn(path, true) : undefined;
  // What an alias stands for is written elsewhere.
  return isNode(node) && !isAlias(node) ? node : undefined;
}

const notYaml = (shown: string, fields: readonly FieldError[]): CliError => new CliError('invalid_input', `${shown} is neither YAML nor JSON: nothing was applied`, { fields });

/** The parser repeats what it stumbled over, however long that is. */
const LONGEST_FAULT = 300;

/** The parser's words, but for those of the engine that runs it. */
function faultIn(message: string): string {
  if (message.startsWith('Maximum call stack')) return 'is nested too deeply: no set is';
  const line = message.split('\n')[0]?.replace(/:$/, '') ?? '';
  return line.length > LONGEST_FAULT ? `${line.slice(0, LONGEST_FAULT)} …` : line;
}
