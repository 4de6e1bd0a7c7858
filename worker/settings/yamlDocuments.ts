/**
 * Reads YAML and its subset JSON. Input beyond the limits is rejected before it takes long to
 * parse.
 */
import {
  isMap,
  isNode,
  isScalar,
  LineCounter,
  parseAllDocuments,
  visit,
  type Document,
} from 'yaml';

/**
 * Maximum length (characters): two hundred sets with a pod template each, or thousands that share
 * one. The parser needs up to a second for it.
 */
const LONGEST = 256 * 1024;
/**
 * Maximum number of uses of an anchor, multiplied for uses within others. Hundreds of sets may
 * share a template, and documents that expand exponentially are rejected.
 */
const MAX_ALIASES = 10_000;
/**
 * Maximum depth of lists, maps and their entries. A pod has about thirty. The time for a document
 * grows with the square of its depth.
 */
const DEEPEST = 200;
/** Maximum number of syntax errors that are reported. */
const MAX_FAULTS = 20;
/** Maximum length of an error (characters), because the parser repeats the text that it rejects. */
const MAX_FAULT = 300;

/** Syntax error in a YAML text. */
export interface YamlSyntaxError {
  /** Number of the document, from 1. Absent if the text has none. */
  readonly document?: number;
  readonly message: string;
}

/**
 * Error for invalid YAML. Its message continues the name of the text, and repeats nothing of the
 * text, which may contain a secret.
 */
export class YamlError extends Error {
  override readonly name = 'YamlError';
  /** Position and details, if there are any. May repeat parts of the text. */
  readonly errors: readonly YamlSyntaxError[];

  constructor(message: string, errors: readonly YamlSyntaxError[]) {
    super(message);
    this.errors = errors;
  }
}

/** Document of a YAML text, parsed and as a plain value. */
export interface YamlDocument {
  readonly document: Document.Parsed;
  readonly value: unknown;
}

/**
 * Parses all documents of a YAML text.
 * @param lines - records where lines begin
 * @throws YamlError if the text is not valid YAML, too long, too deeply nested, or expanded too far
 * by aliases
 */
export function yamlDocuments(text: string, lines = new LineCounter()): YamlDocument[] {
  if (text.length > LONGEST)
    throw new YamlError(
      `is ${Math.ceil(text.length / 1024)} KiB long: write at most ${LONGEST / 1024} KiB into one file`,
      [],
    );
  const documents = orError(undefined, () => parsed(text, lines));
  const faults = documents.flatMap((document, index) =>
    orError(index + 1, () => errorsOf(document)).map(([message, at]) => ({
      document: index + 1,
      message: `${firstLine(message)} at ${positionOf(at, lines)}`,
    })),
  );
  if (faults.length > 0) throw notYaml(faults.slice(0, MAX_FAULTS));
  return documents.map((document, index) => ({
    document,
    value: orError(index + 1, () => document.toJS({ maxAliasCount: MAX_ALIASES }) as unknown),
  }));
}

/**
 * Returns the value of a text with one document, or `null` for an empty text.
 * @throws YamlError as {@link yamlDocuments} does, and if there are several documents
 */
export function yamlValue(text: string): unknown {
  const [first, second] = yamlDocuments(text);
  if (second !== undefined)
    throw notYaml([{ document: 2, message: 'is one too many: write one document' }]);
  return first?.value ?? null;
}

function parsed(text: string, lineCounter: LineCounter): Document.Parsed[] {
  // `merge` is for `<<: *base`, with which sets share a template. Unique keys are checked in
  // `errorsOf`, because the parser needs quadratic time for it.
  const documents = parseAllDocuments(text, {
    lineCounter,
    merge: true,
    version: '1.2',
    uniqueKeys: false,
    prettyErrors: false,
  });
  return Array.isArray(documents) ? documents : [];
}

/** Returns the faults of a document with their positions (characters). */
function errorsOf(document: Document.Parsed): [message: string, at: number][] {
  const faults = document.errors.map(({ message, pos }): [string, number] => [message, pos[0]]);
  visit(document, {
    Collection(_key, collection, path) {
      if (path.length > DEEPEST) {
        faults.push([TOO_DEEP, collection.range?.[0] ?? 0]);
        return visit.BREAK;
      }
      if (!isMap(collection)) return undefined;
      const known = new Set<unknown>();
      for (const { key } of collection.items) {
        if (key === null) continue;
        // No field has such a name, and formatting deeply nested keys as text does not end in
        // reasonable time.
        if (!isScalar(key))
          faults.push(['Map keys must be text', isNode(key) ? (key.range?.[0] ?? 0) : 0]);
        else if (known.has(key.value))
          faults.push(['Map keys must be unique', key.range?.[0] ?? 0]);
        else known.add(key.value);
      }
      return undefined;
    },
  });
  return faults;
}

function positionOf(at: number, lines: LineCounter): string {
  const { line, col } = lines.linePos(at);
  return `line ${line}, column ${col}`;
}

/**
 * Runs a function of the parser and converts its errors. The parser throws if a document is too
 * deep, or if its aliases expand too far.
 */
function orError<T>(document: number | undefined, does: () => T): T {
  try {
    return does();
  } catch (error) {
    throw notYaml([
      { ...(document !== undefined && { document }), message: firstLine((error as Error).message) },
    ]);
  }
}

const TOO_DEEP = 'it is nested too deeply';

const notYaml = (faults: readonly YamlSyntaxError[]): YamlError =>
  new YamlError('is neither YAML nor JSON: check its syntax', faults);

/**
 * Returns the first line of the parser's message. A message of the JavaScript engine is replaced.
 */
function firstLine(message: string): string {
  if (message.startsWith('Maximum call stack')) return TOO_DEEP;
  const line = message.split('\n')[0] ?? '';
  return line.length > MAX_FAULT ? `${line.slice(0, MAX_FAULT)} …` : line;
}
