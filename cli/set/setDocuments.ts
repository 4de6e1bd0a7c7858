/**
 * Reads the documents of `holdfast set apply -f`: YAML with one or several documents, lists of
 * sets, or JSON.
 */
import { isAlias, isNode, LineCounter, type Document, type Node } from 'yaml';
import {
  YamlError,
  yamlDocuments,
  type YamlDocument,
} from '../../worker/settings/yamlDocuments.ts';
import { CliError } from '../shared/exit.ts';

/** Set as it is written in the file, not validated. */
export interface SetDocument {
  /** Label for messages: `document 2 (linux)`, `document 1, item 3`. */
  readonly label: string;
  readonly value: unknown;
  /**
   * Returns the line of a field, counted from 1. For a missing field it is the line of the object
   * that lacks it.
   * @param field - such as `template.labels.0`
   */
  readonly lineOf: (field: string) => number;
}

/**
 * Splits a file into its documents. Each item of a list is one document. Empty documents are
 * skipped.
 * @param fileName - as shown in messages
 * @throws CliError `invalid_input` if the file is neither YAML nor JSON (with all syntax errors), has
 * no documents, or is too long
 */
export function readSetDocuments(text: string, fileName: string): SetDocument[] {
  const lines = new LineCounter();
  const found = parse(text, lines, fileName).flatMap(({ document, value }, index) =>
    split(document, value, index + 1, lines),
  );
  if (found.length === 0) throw new CliError('invalid_input', `${fileName} ${NO_SET}`);
  return found;
}

const NO_SET =
  'must contain a set: name, template, and replicas or minIdle and max; see "holdfast set apply --help"';

function parse(text: string, lines: LineCounter, fileName: string): YamlDocument[] {
  try {
    return yamlDocuments(text, lines);
  } catch (error) {
    if (!(error instanceof YamlError)) throw error;
    const { message, errors } = error;
    if (errors.length === 0)
      throw new CliError('invalid_input', `${fileName} ${message}`, { cause: error });
    throw new CliError(
      'invalid_input',
      `${fileName} is neither YAML nor JSON; nothing was applied`,
      {
        fields: errors.map((error) => ({
          field: error.document === undefined ? 'input' : `document ${error.document}`,
          message: error.message,
        })),
        cause: error,
      },
    );
  }
}

function split(
  document: Document.Parsed,
  value: unknown,
  number: number,
  lines: LineCounter,
): SetDocument[] {
  if (value === null || value === undefined) return [];
  const lineAt = (path: readonly string[]): number => lines.linePos(startOf(document, path)).line;
  if (!Array.isArray(value))
    return [
      {
        label: labelOf(`document ${number}`, value),
        value,
        lineOf: (field) => lineAt(field.split('.')),
      },
    ];
  return value.map((item: unknown, index) => ({
    label: labelOf(`document ${number}, item ${index + 1}`, item),
    value: item,
    lineOf: (field) => lineAt([String(index), ...field.split('.')]),
  }));
}

function labelOf(position: string, value: unknown): string {
  const name =
    value !== null && typeof value === 'object' && 'name' in value ? value.name : undefined;
  return typeof name === 'string' && name !== '' ? `${position} (${name})` : position;
}

/** Returns the start of the deepest part of a path that exists in the document. */
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
  // The value of an alias is at another position.
  return isNode(node) && !isAlias(node) ? node : undefined;
}
