/** The chart's values as deploy/chart/values.yaml has them: the one place where each has its default and is described. */
import { isMap, isScalar, parseDocument, type Node, type Pair } from 'yaml';

export interface ChartValue {
  /** `worker.replicas` */
  readonly path: string;
  readonly default: unknown;
  /** What its comment says behind `--`; empty where the name says all. */
  readonly text: string;
}

/** Each value, in the file's order: the leaves, and what is an object by choice of the user. */
export function chartValues(yaml: string): ChartValue[] {
  const { contents } = parseDocument(yaml);
  if (!isMap(contents)) throw new Error('the values are no object');
  return contents.items.flatMap((pair) => valuesOf(pair as Pair<Node, Node>, ''));
}

function valuesOf({ key, value }: Pair<Node, Node>, above: string): ChartValue[] {
  const path = `${above}${String(key)}`;
  if (value === null) throw new Error(`${path}: has no default`);
  const text = descriptionOf(key);
  // A default with a description is one value, whatever is in it.
  if (isMap(value) && value.items.length > 0 && text === '' && !WHOLE.has(path.split('.').at(-1) ?? '')) return value.items.flatMap((pair) => valuesOf(pair as Pair<Node, Node>, `${path}.`));
  return [{ path, default: value.toJSON(), text }];
}

/** Objects of Kubernetes': read as they are. */
const WHOLE = new Set(['resources', 'podLabels']);

/** Of the comment before a key the part from `--` on, on one line. */
function descriptionOf(key: Node): string {
  const comment = isScalar(key) ? (key.commentBefore ?? '') : '';
  const [, text = ''] = /(?:^|\n) -- ([^]*)$/.exec(comment) ?? [];
  return text.replaceAll(/\s*\n\s*/g, ' ').trim();
}

/** The rows of the table in docs/install.md. */
export function valuesTable(values: readonly ChartValue[]): string {
  const shown = (value: unknown): string => (value === '' ? '–' : `\`${JSON.stringify(value)}\``);
  const rows = values.map(({ path, default: initial, text }) => `| \`${path}\` | ${shown(initial)} | ${text.replaceAll('|', String.raw`\|`)} |`);
  return ['| Value | Default | Meaning |', '|---|---|---|', ...rows].join('\n');
}
