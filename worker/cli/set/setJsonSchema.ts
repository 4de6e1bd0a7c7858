import { z } from 'zod';
import { runnerSchema } from '../../../core/input/runner.ts';
import { setSchema } from '../../../core/input/runnerSet.ts';

/** What a document of `holdfast set apply` may hold, a set or a list of them, as JSON Schema (draft 2020-12), for editors; what fields mean together only `set apply` checks. */
export function setJsonSchema(): object {
  const set = setSchema.extend({ template: runnerSchema.omit({ name: true, set: true }) });
  return { title: 'Runner sets (Holdfast)', ...z.toJSONSchema(z.union([set, z.array(set)]), { io: 'input', unrepresentable: 'any', reused: 'ref' }) };
}
