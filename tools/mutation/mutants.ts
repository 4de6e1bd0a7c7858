/** Mutants: copies of a source file with one small change that a test must notice. */
import { parseSource, type Span } from '../shared/parsedSource.ts';

/** What a mutant changes. */
export type MutationKind =
  'condition never true' | 'condition negated' | 'operator' | 'boolean' | 'call removed';

/** A source file with one change. */
export interface Mutant {
  /** Path relative to the project. */
  readonly file: string;
  /** Line of the change, from 1. */
  readonly line: number;
  readonly kind: MutationKind;
  /** The source that is replaced. */
  readonly original: string;
  readonly replacement: string;
  /** Source of the whole file with the change. */
  readonly text: string;
}

/** A change by its byte offsets in the source. */
interface Change extends Span {
  readonly kind: MutationKind;
  readonly replacement: string;
}

/** Replacements of operators. Each changes the result, but rarely the type. */
const OPERATORS: Readonly<Record<string, string>> = {
  '===': '!==',
  '!==': '===',
  '<': '<=',
  '<=': '<',
  '>': '>=',
  '>=': '>',
  '&&': '||',
  '||': '&&',
  '??': '&&',
  '-': '+',
  '*': '/',
  '/': '*',
};

/** The parts of the nodes of the syntax tree that matter here. */
interface SyntaxNode {
  readonly type?: string;
  readonly span?: Span;
  readonly test?: SyntaxNode | null;
  readonly operator?: string;
  readonly left?: SyntaxNode;
  readonly right?: SyntaxNode;
  readonly expression?: SyntaxNode;
  readonly argument?: SyntaxNode;
  readonly value?: unknown;
}

/** Returns all mutants of a source file. */
export function mutantsOf(file: string, source: string): Mutant[] {
  const bytes = Buffer.from(source);
  return changesOf(bytes).map(({ start, end, kind, replacement }) => ({
    file,
    line: lineOf(bytes, start),
    kind,
    original: bytes.subarray(start, end).toString(),
    replacement,
    text: bytes.subarray(0, start).toString() + replacement + bytes.subarray(end).toString(),
  }));
}

const lineOf = (bytes: Buffer, offset: number): number =>
  bytes.subarray(0, offset).toString().split('\n').length;

function changesOf(bytes: Buffer): Change[] {
  const { body, toFileSpan } = parseSource(bytes.toString());
  const found: Change[] = [];
  const walk = (node: unknown): void => {
    if (typeof node !== 'object' || node === null) return;
    if (Array.isArray(node)) return node.forEach(walk);
    const typed = node as SyntaxNode;
    // Types are not executed.
    if (typed.type?.startsWith('Ts') === true && !EXECUTED.has(typed.type)) return;
    found.push(...changesOfNode(typed, bytes, toFileSpan));
    Object.values(node).forEach(walk);
  };
  walk(body);
  return found.toSorted((a, b) => a.start - b.start);
}

/** Nodes of TypeScript that contain an expression. */
const EXECUTED = new Set([
  'TsAsExpression',
  'TsNonNullExpression',
  'TsSatisfiesExpression',
  'TsConstAssertion',
  'TsParameterProperty',
]);

function changesOfNode(
  { type, span, test, operator, left, right, expression, value }: SyntaxNode,
  bytes: Buffer,
  toFileSpan: (span: Span) => Span,
): Change[] {
  const at = span && toFileSpan(span);
  if (at === undefined) return [];
  if (type === 'IfStatement' || type === 'ConditionalExpression')
    return test?.span === undefined ? [] : conditionChanges(toFileSpan(test.span), bytes);
  if (type === 'BinaryExpression' && left?.span && right?.span)
    return operatorChange(operator ?? '', toFileSpan(left.span), toFileSpan(right.span), bytes);
  if (type === 'BooleanLiteral')
    return [{ ...at, kind: 'boolean', replacement: String(value !== true) }];
  if (type === 'ExpressionStatement' && isCall(expression))
    return [{ ...at, kind: 'call removed', replacement: ';' }];
  return [];
}

function conditionChanges(at: Span, bytes: Buffer): Change[] {
  const condition = bytes.subarray(at.start, at.end).toString();
  return [
    { ...at, kind: 'condition never true', replacement: 'false' },
    { ...at, kind: 'condition negated', replacement: `!(${condition})` },
  ];
}

function operatorChange(operator: string, left: Span, right: Span, bytes: Buffer): Change[] {
  const other = OPERATORS[operator];
  const between = bytes.subarray(left.end, right.start).toString();
  const position = between.indexOf(operator);
  if (other === undefined || position < 0) return [];
  const start = left.end + Buffer.byteLength(between.slice(0, position));
  // `a ?? b` and `a || b` must not be mixed without parentheses, so both operands get them.
  const wrap = (span: Span): string => `(${bytes.subarray(span.start, span.end).toString()})`;
  if (operator === '&&' || operator === '||' || operator === '??')
    return [
      {
        start: left.start,
        end: right.end,
        kind: 'operator',
        replacement: `(${wrap(left)} ${other} ${wrap(right)})`,
      },
    ];
  return [{ start, end: start + operator.length, kind: 'operator', replacement: other }];
}

const isCall = (node: SyntaxNode | undefined): boolean =>
  node?.type === 'CallExpression' ||
  (node?.type === 'AwaitExpression' && node.argument?.type === 'CallExpression');
