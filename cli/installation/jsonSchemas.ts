/**
 * JSON Schemas (draft 2020-12) of input files, for editors. Only the command or the worker checks
 * how fields depend on one another.
 */
import { z } from 'zod';
import { podPolicySchema } from '../../activities/compute/kubernetes/podPolicy/podPolicy.ts';
import { jobSchema } from '../../core/input/jobSchema.ts';
import { runnerSchema } from '../../core/input/runnerSchema.ts';
import { setSchema } from '../../core/input/runnerSetSchema.ts';
import type { Output } from '../shared/output.ts';

const set = setSchema.extend({ template: runnerSchema.omit({ name: true, set: true }) });

/** Schema of each input file, by its title. */
const SCHEMAS = {
  'A runner': runnerSchema,
  'Runner sets': z.union([set, z.array(set)]),
  'A job of several steps': jobSchema,
  'A pod policy': podPolicySchema,
} as const;

/** Titles of the input files that have a JSON Schema. */
export type SchemaOf = keyof typeof SCHEMAS;

/** File of each schema in the package directory `schemas/`. */
export const SCHEMA_FILES: Readonly<Record<SchemaOf, string>> = {
  'A runner': 'runner.schema.json',
  'Runner sets': 'sets.schema.json',
  'A job of several steps': 'job.schema.json',
  'A pod policy': 'pod-policy.schema.json',
};

/** Prints the JSON Schema of an input file. */
export function printJsonSchema(output: Output, of: SchemaOf): void {
  const schema = jsonSchema(of);
  output.result(schema, JSON.stringify(schema, undefined, 2).split('\n'));
}

/** Returns the JSON Schema (draft 2020-12) of an input file, for editors. */
export function jsonSchema(of: SchemaOf): object {
  return {
    title: `${of} (Holdfast)`,
    ...z.toJSONSchema(SCHEMAS[of], {
      io: 'input',
      unrepresentable: 'any',
      reused: 'ref',
      // Such a field exists only to be rejected with a message of its own.
      override: ({ zodSchema, jsonSchema }) => {
        if (zodSchema._zod.def.type === 'undefined') jsonSchema.not = {};
      },
    }),
  };
}
