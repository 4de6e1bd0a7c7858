import { z } from 'zod';
import { runnerSchema } from '../../../core/input/runner.ts';

/** What a file of `holdfast runner start` and `holdfast run` may hold, as JSON Schema (draft 2020-12), for editors; what fields mean together only these commands check. */
export function runnerJsonSchema(): object {
  return { title: 'A runner (Holdfast)', ...z.toJSONSchema(runnerSchema, { io: 'input', unrepresentable: 'any', reused: 'ref' }) };
}
