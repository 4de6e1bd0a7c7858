import { fileURLToPath } from 'node:url';
import { jsonSchema, SCHEMA_FILES, type SchemaOf } from '../../cli/installation/jsonSchemas.ts';

/** Returns the files of `schemas/`: the schemas that `holdfast schema` prints, for editors. */
export function schemaFiles(): { path: string; text: string }[] {
  return Object.entries(SCHEMA_FILES).map(([of, name]) => ({ path: fileURLToPath(new URL(`../../schemas/${name}`, import.meta.url)), text: `${JSON.stringify(jsonSchema(of as SchemaOf), undefined, 2)}\n` }));
}
