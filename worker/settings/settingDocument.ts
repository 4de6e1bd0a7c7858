/** Reads settings that are documents: YAML or JSON, inline or in a file, validated by a schema. */
import { readFileSync } from 'node:fs';
import type { z } from 'zod';
import { parseInput } from '../../core/input/fields.ts';
import type { ConfigProblem } from './configError.ts';
import { YamlError, yamlValue } from './yamlDocuments.ts';

/** Settings that may contain the document. `inline` takes precedence. */
export interface DocumentSettings {
  readonly inline?: string;
  readonly file: string;
}

/**
 * Reads and validates a document.
 * @param problems - receives an entry for each fault
 * @returns `undefined` if neither setting is set, or the document is invalid
 */
export function readDocument<Schema extends z.ZodType>(
  set: Readonly<Record<string, string | undefined>>,
  settings: DocumentSettings,
  schema: Schema,
  problems: ConfigProblem[],
): z.output<Schema> | undefined {
  const inline = settings.inline === undefined ? undefined : set[settings.inline];
  const file = set[settings.file];
  const setting = inline === undefined ? settings.file : (settings.inline ?? '');
  if (inline === undefined && file === undefined) return undefined;
  let value: unknown;
  try {
    value = yamlValue(inline ?? readFileSync(file ?? '', 'utf8'));
  } catch (error) {
    const what = inline === undefined ? file : 'it';
    problems.push({
      setting,
      message:
        error instanceof YamlError
          ? `${what} ${error.message}`
          : `cannot read ${file} (${(error as NodeJS.ErrnoException).code}): check the path and its permissions`,
    });
    return undefined;
  }
  const parsed = parseInput(schema, value);
  if (parsed.ok) return parsed.spec;
  problems.push(
    ...parsed.errors.map(({ field, message }) => ({ setting, message: `${field} ${message}` })),
  );
  return undefined;
}
