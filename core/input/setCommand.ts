/**
 * Parses the input of the `setCommand` workflow. The set's own admission (runnerSet.ts) validates a
 * declaration, because part of it is only in the set.
 */
import { z } from 'zod';
import type { RunnerSetInput, SetCommandInput } from '../contract/index.ts';
import { isObject } from '../domain/isObject.ts';
import { parseInput, type Parsed } from './fields.ts';
import { setSchema } from './runnerSetSchema.ts';

const { name, template, replicas, minIdle, max } = setSchema.shape;
const set = name;
const reason = z.string().max(500).exactOptional();

const schema = z.discriminatedUnion(
  'command',
  [
    z
      .strictObject({ set, command: z.literal('scale'), replicas, minIdle, max })
      .refine(
        (scale) => [scale.replicas, scale.minIdle, scale.max].some((size) => size !== undefined),
        { path: ['replicas'], message: 'is missing: give replicas, or minIdle and max' },
      ),
    z.strictObject({
      set,
      command: z.literal('apply'),
      declaration: z.custom<RunnerSetInput>(
        isObject,
        'is required: it is the declaration of the set',
      ),
    }),
    z.strictObject({ set, command: z.literal('setTemplate'), template }),
    z.strictObject({ set, command: z.literal('pause'), reason }),
    z.strictObject({ set, command: z.literal('resume') }),
    z.strictObject({
      set,
      command: z.literal('hold'),
      runner: z
        .string('is missing: its name or workflow id')
        .min(1, 'is empty: give its name or workflow id')
        .max(200),
      release: z.boolean().exactOptional(),
    }),
    z.strictObject({ set, command: z.literal('drain'), reason }),
  ],
  'must be one of scale, apply, setTemplate, pause, resume, hold and drain',
);

/** Parses the input of a command. Reports all errors at once. */
export function parseSetCommandInput(raw: unknown): Parsed<SetCommandInput> {
  return parseInput(
    isObject(raw)
      ? schema
      : z.custom<SetCommandInput>(
          isObject,
          'must be an object with set, command, and the fields of that command',
        ),
    raw,
  );
}
