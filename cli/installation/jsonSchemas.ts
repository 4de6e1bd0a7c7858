/** JSON Schemas (draft 2020-12) of what people write, for editors. What fields mean together only the command or the worker checks that reads the file. */
import { z } from 'zod';
import { podPolicySchema } from '../../activities/compute/kubernetes/podPolicy/podPolicy.ts';
import { jobSchema } from '../../core/input/job.ts';
import { runnerSchema } from '../../core/input/runner.ts';
import { setSchema } from '../../core/input/runnerSet.ts';
import type { Output } from '../shared/output.ts';

const set = setSchema.extend({ template: runnerSchema.omit({ name: true, set: true }) });

/** By what a file is called in the schema's title. */
const SCHEMAS = {
  'A runner': runnerSchema,
  'Runner sets': z.union([set, z.array(set)]),
  'A job of several steps': jobSchema,
  'A pod policy': podPolicySchema,
} as const;

export type SchemaOf = keyof typeof SCHEMAS;

/** Each schema's file in the package's folder `schemas/`. */
export const SCHEMA_FILES: Readonly<Record<SchemaOf, string>> = {
  'A runner': 'runner.schema.json',
  'Runner sets': 'sets.schema.json',
  'A job of several steps': 'job.schema.json',
  'A pod policy': 'pod-policy.schema.json',
};

export function printJsonSchema(output: Output, of: SchemaOf): void {
  const schema = jsonSchema(of);
  output.result(schema, JSON.stringify(schema, undefined, 2).split('\n'));
}

export function jsonSchema(of: SchemaOf): object {
  return {
    title: `${of} (Holdfast)`,
    ...z.toJSONSchema(SCHEMAS[of], {
      io: 'input',
      unrepresentable: 'any',
      reused: 'ref',
      // A field that is there only to be refused with a word of its own.
      override: ({ zodSchema, jsonSchema }) => {
        if (zodSchema._zod.def.type === 'undefined') jsonSchema.not = {};
      },
    }),
  };
}
