import { fileURLToPath } from 'node:url';
import { jsonSchema, SCHEMA_FILES, type SchemaOf } from '../../cli/installation/jsonSchemas.ts';

/** What `schemas/` has: the schemas that the command prints, for editors that cannot run it. */
export function schemaFiles(): { path: string; text: string }[] {
  return Object.entries(SCHEMA_FILES).map(([of, name]) => ({ path: fileURLToPath(new URL(`../../schemas/${name}`, import.meta.url)), text: `${JSON.stringify(jsonSchema(of as SchemaOf), undefined, 2)}\n` }));
}
