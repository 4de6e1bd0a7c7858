import { parseSync, type ModuleItem } from '@swc/core';

/** Position in a source file (bytes). */
export interface Span {
  readonly start: number;
  readonly end: number;
}

/** Syntax tree of a TypeScript file. */
export interface ParsedSource {
  readonly body: readonly ModuleItem[];
  /** Converts the position of a node to one in the file. */
  readonly toFileSpan: (span: Span) => Span;
}

/** Parses a TypeScript file. */
export function parseSource(source: string): ParsedSource {
  const { span, body } = parseSync(source, { syntax: 'typescript' });
  // The parser counts offsets from the first file that this process has parsed. The first statement
  // of a file can come after a comment.
  const base = span.start - Buffer.byteLength(source.slice(0, firstToken(source)));
  return { body, toFileSpan: ({ start, end }) => ({ start: start - base, end: end - base }) };
}

/** Returns the offset of the first statement, after comments and white space. */
function firstToken(source: string): number {
  return /^(?:\s|\/\*[^]*?\*\/|\/\/.*\n)*/.exec(source)?.[0].length ?? 0;
}
