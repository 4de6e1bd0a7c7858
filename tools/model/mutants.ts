/** Mutants of the decision tables: modules with one condition that is never true, or negated. */
import { readFileSync } from 'node:fs';
import { registerHooks } from 'node:module';
import { fileURLToPath } from 'node:url';
import { parseSource, type Span } from '../shared/parsedSource.ts';
import { TABLES, type Tables } from './decisionTables.ts';

/** The source files of each table. The first is the module in {@link TABLES}. */
const FILES: Readonly<Record<keyof Tables, readonly [string, ...string[]]>> = {
  unregisterTable: ['workflows/runner/unregisterTable.ts'],
  unregisterFacts: ['workflows/runner/unregisterFacts.ts'],
  onlineDecision: ['workflows/runner/startupDecision.ts'],
  verdicts: [
    'tools/model/verdictTable.ts',
    'workflows/runner/endFacts.ts',
    'workflows/runner/runnerLoss.ts',
    'workflows/runner/completion.ts',
    'workflows/runner/verdict.ts',
  ],
  cancellation: ['core/domain/cancellation.ts'],
};

/** Functions that parse a message, or map one value to another. Their own tests cover them. */
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

/** A decision table with one changed condition. */
export interface Mutant {
  readonly table: keyof Tables;
  readonly line: number;
  /** Name of the function with the condition. */
  readonly where: string;
  readonly condition: string;
  readonly change: 'never' | 'negated';
  /** Source file with the condition, relative to the project. */
  readonly file: string;
  /** Changed source of the file. */
  readonly text: string;
  readonly load: () => Promise<Tables>;
}

/** A condition, by its offsets in the source (bytes). */
interface Condition extends Span {
  readonly where: string;
}

/** The source of each mutant, by the URL of its module. */
const texts = new Map<string, string>();
/** The query of a module that is loaded for a mutant. The files that it imports get it as well. */
const MUTANT_QUERY = /\?mutant=.*$/;
const urlOf = (file: string): string => new URL(`../../${file}`, import.meta.url).href;
const MUTABLE_URLS = new Set(Object.values(FILES).flat().map(urlOf));
registerHooks({
  resolve(specifier, context, nextResolve) {
    const resolved = nextResolve(specifier, context);
    const [query] = MUTANT_QUERY.exec(context.parentURL ?? '') ?? [];
    return query !== undefined && MUTABLE_URLS.has(resolved.url)
      ? { ...resolved, url: `${resolved.url}${query}` }
      : resolved;
  },
  load(url, context, nextLoad) {
    const source = texts.get(url);
    return source === undefined
      ? nextLoad(url, context)
      : { format: 'module-typescript', source, shortCircuit: true };
  },
});

/** Returns the mutants of a table. */
export function mutantsOf(table: keyof Tables): Mutant[] {
  return FILES[table].flatMap((file) => mutantsOfFile(table, file));
}

function mutantsOfFile(table: keyof Tables, file: string): Mutant[] {
  const source = readFileSync(fileURLToPath(urlOf(file)));
  return conditionsOf(source.toString()).flatMap(({ where, start, end }) => {
    const condition = source.subarray(start, end).toString();
    const line = source.subarray(0, start).toString().split('\n').length;
    return (['never', 'negated'] as const).map((change) => {
      const text =
        source.subarray(0, start).toString() +
        (change === 'never' ? '(false as boolean)' : `!(${condition})`) +
        source.subarray(end).toString();
      const load = async (): Promise<Tables> => {
        const query = `?mutant=${file}-${start}-${change}`;
        texts.set(`${urlOf(file)}${query}`, text);
        const module = (await import(`${urlOf(FILES[table][0])}${query}`)) as unknown;
        return { ...TABLES, [table]: module };
      };
      return { table, line, where, condition, change, file, text, load };
    });
  });
}

/** Returns the conditions of `if` statements and conditional expressions. */
function conditionsOf(source: string): Condition[] {
  const { body, toFileSpan } = parseSource(source);
  const found: Condition[] = [];
  const walk = (node: unknown, decides: boolean, where: string): void => {
    if (typeof node !== 'object' || node === null) return;
    if (Array.isArray(node)) return node.forEach((each) => walk(each, decides, where));
    const { type, test, identifier } = node as {
      type?: string;
      test?: { span: Span };
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
      found.push({ where: within, ...toFileSpan(test.span) });
    for (const child of Object.values(node)) walk(child, goes, within);
  };
  walk(body, true, '');
  return found.toSorted((a, b) => a.start - b.start);
}
