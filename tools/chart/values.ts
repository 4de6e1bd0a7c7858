/**
 * Reads the chart's values from deploy/chart/values.yaml, which has the default and the description
 * of each.
 */
import { isMap, isScalar, parseDocument, type Node, type Pair, type YAMLMap } from 'yaml';

export interface ChartValue {
  /** `worker.replicas` */
  readonly path: string;
  /** Of a value, not of a group. */
  readonly default?: unknown;
  /** The text of the comment after `--`; empty if the name needs no description. */
  readonly text: string;
}

/** Each value in the file's order, and each group that is described. */
export function chartValues(yaml: string): ChartValue[] {
  const { contents } = parseDocument(yaml);
  if (!isMap(contents)) throw new Error('the values are no object');
  return valuesIn(contents, '');
}

function valuesIn({ items, commentBefore }: YAMLMap, above: string): ChartValue[] {
  return (items as Pair<Node, Node>[]).flatMap(({ key, value }, index) => {
    const path = `${above}${String(key)}`;
    if (value === null) throw new Error(`${path}: has no default`);
    // The parser assigns the text before the first key to the object.
    const text = descriptionIn(
      (isScalar(key) ? key.commentBefore : undefined) ??
        (index === 0 ? commentBefore : undefined) ??
        '',
    );
    if (!isMap(value) || value.items.length === 0 || WHOLE.has(String(key)))
      return [{ path, default: value.toJSON() as unknown, text }];
    return [...(text === '' ? [] : [{ path, text }]), ...valuesIn(value, `${path}.`)];
  });
}

/** Objects of Kubernetes': read as they are. */
const WHOLE = new Set(['resources', 'podLabels', 'labels']);

/** Of a comment the part from `--` on, on one line. */
function descriptionIn(comment: string): string {
  const [, text = ''] = /(?:^|\n) -- ([^]*)$/.exec(comment) ?? [];
  return text.replaceAll(/\s*\n\s*/g, ' ').trim();
}

/** Returns the table of docs/install.md: a row for each described value. */
export function valuesTable(values: readonly ChartValue[]): string {
  const shown = (value: unknown): string => {
    if (value === undefined) return '';
    return value === '' ? '–' : `\`${JSON.stringify(value)}\``;
  };
  const rows = values
    .filter(({ text }) => text !== '')
    .map(
      ({ path, default: initial, text }) =>
        `| \`${path}\` | ${shown(initial)} | ${text.replaceAll('|', String.raw`\|`)} |`,
    );
  return ['| Value | Default | Meaning |', '|---|---|---|', ...rows].join('\n');
}
