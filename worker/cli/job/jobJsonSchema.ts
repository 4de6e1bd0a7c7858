import { z } from 'zod';
import { jobSchema } from '../../../core/input/job.ts';
import { jobDefinitionSchema } from '../../../core/input/jobDefinition.ts';

/** What a file of `holdfast job run` may hold, as JSON Schema (draft 2020-12), for editors; what fields mean together only `job run` checks. */
export function jobJsonSchema(): object {
  return { title: 'A job of several steps (Holdfast)', ...toJsonSchema(jobSchema) };
}

/** What a document of `holdfast job apply` may hold, a declared job or a list of them, in the same way. */
export function jobDefinitionJsonSchema(): object {
  return { title: 'Declared jobs (Holdfast)', ...toJsonSchema(z.union([jobDefinitionSchema, z.array(jobDefinitionSchema)])) };
}

function toJsonSchema(schema: z.ZodType): object {
  return z.toJSONSchema(schema, {
    io: 'input',
    unrepresentable: 'any',
    reused: 'ref',
    // A field that is there only to be refused with a word of its own.
    override: ({ zodSchema, jsonSchema }) => {
      if (zodSchema._zod.def.type === 'undefined') jsonSchema.not = {};
    },
  });
}
