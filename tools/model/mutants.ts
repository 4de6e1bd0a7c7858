/** The tables with one condition changed: never true, or turned round. Made from their source, as they are loaded. */
import { readFileSync } from 'node:fs';
import { registerHooks } from 'node:module';
import { fileURLToPath } from 'node:url';
import { parseSync } from '@swc/core';
import { TABLES, type Tables } from './mind.ts';

/** The files, and what each is in {@link Tables}. */
const FILES: Readonly<Record<keyof Tables, string>> = {
  unregisterTable: 'workflows/runner/unregisterTable.ts',
  unregisterFacts: 'workflows/runner/unregisterFacts.ts',
  onlineDecision: 'workflows/runner/startupDecision.ts',
  verdicts: 'workflows/runner/verdict.ts',
  cancellation: 'core/domain/cancellation.ts',
};

/** What is read of a message, or only maps one word to another, is not for histories to catch: its table tests do. */
const NOT_DECISIONS = new Set([
  'lossCause',
  'replace',
  'readCancelRequest',
  'readDrainRequest',
  'readReason',
  'clean',
  'end',
  'failed',
]);

export interface Mutant {
  readonly table: keyof Tables;
  readonly line: number;
  /** The function that it is in. */
  readonly where: string;
  readonly condition: string;
  readonly change: 'never' | 'negated';
  /** The table's file, from the project's root. */
  readonly file: string;
  /** Its source with the change. */
  readonly text: string;
  readonly load: () => Promise<Tables>;
}

interface Place {
  readonly where: string;
  readonly start: number;
  readonly end: number;
}

/** The text of every mutant that was asked for, by its address. */
const texts = new Map<string, string>();
registerHooks({
  load(url, context, nextLoad) {
    const source = texts.get(url);
    return source === undefined
      ? nextLoad(url, context)
      : { format: 'module-typescript', source, shortCircuit: true };
  },
});

export function mutantsOf(table: keyof Tables): Mutant[] {
  const url = new URL(`../../${FILES[table]}`, import.meta.url);
  const source = readFileSync(fileURLToPath(url));
  return conditionsOf(source.toString()).flatMap(({ where, start, end }) => {
    const condition = source.subarray(start, end).toString();
    const line = source.subarray(0, start).toString().split('\n').length;
    return (['never', 'negated'] as const).map((change) => {
      const text =
        source.subarray(0, start).toString() +
        (change === 'never' ? '(false as boolean)' : `!(${condition})`) +
        source.subarray(end).toString();
      const load = async (): Promise<Tables> => {
        const mutated = `${url.href}?${start}-${change}`;
        texts.set(mutated, text);
        return { ...TABLES, [table]: (await import(mutated)) as unknown };
      };
      return { table, line, where, condition, change, file: FILES[table], text, load };
    });
  });
}

/** Where conditions of `if` and of `… ? … : …` are, in bytes. */
function conditionsOf(source: string): Place[] {
  const module = parseSync(source, { syntax: 'typescript' });
  const found: Place[] = [];
  // Offsets count from the first thing that this process has parsed; a file's first statement may come after a comment.
  const base = module.span.start - Buffer.byteLength(source.slice(0, firstToken(source)));
  const walk = (node: unknown, decides: boolean, where: string): void => {
    if (typeof node !== 'object' || node === null) return;
    if (Array.isArray(node)) return node.forEach((each) => walk(each, decides, where));
    const { type, test, identifier } = node as {
      type?: string;
      test?: { span: Omit<Place, 'where'> };
      identifier?: { value?: string };
    };
    const within = type === 'FunctionDeclaration' ? (identifier?.value ?? '') : where;
    const goes = type === 'FunctionDeclaration' ? !NOT_DECISIONS.has(within) : decides;
    if (
      goes &&
      test !== undefined &&
      test !== null &&
      (type === 'IfStatement' || type === 'ConditionalExpression')
    )
      found.push({ where: within, start: test.span.start - base, end: test.span.end - base });
    for (const child of Object.values(node)) walk(child, goes, within);
  };
  walk(module.body, true, '');
  return found.toSorted((a, b) => a.start - b.start);
}

/** Where the first statement begins, after comments and blanks. */
function firstToken(source: string): number {
  return /^(?:\s|\/\*[^]*?\*\/|\/\/.*\n)*/.exec(source)?.[0].length ?? 0;
}
