import { z } from 'zod';
import { jobSchema } from '../../../core/input/job.ts';

/** What a file of `holdfast job run` may hold, as JSON Schema (draft 2020-12), for editors; what fields mean together only `job run` checks. */
export function jobJsonSchema(): object {
  const schema = z.toJSONSchema(jobSchema, {
    io: 'input',
    unrepresentable: 'any',
    // A field that is there only to be refused with a word of its own.
    override: ({ zodSchema, jsonSchema }) => {
      if (zodSchema._zod.def.type === 'undefined') jsonSchema.not = {};
    },
  });
  return { title: 'A job of several steps (Holdfast)', ...schema };
}
