/** Validates the documents of `holdfast set apply`. */
import { scheduleError } from '../../activities/runnerSet/schedules.ts';
import type { RunnerSetInput } from '../../core/contract/index.ts';
import { parseRunnerSetInput, type SetSpec } from '../../core/input/runnerSet.ts';
import { validateDocuments } from './admitDocuments.ts';
import type { SetDocument } from './setDocuments.ts';

/** A document that is a set. */
export interface AdmittedDocument {
  readonly input: RunnerSetInput;
  readonly spec: SetSpec;
  /** Input that does not have the effect its author may expect. */
  readonly warnings: readonly string[];
}

/** @param shown - the file's name, for messages @throws CliError `invalid_input` with every error of every document */
export function admitSets(documents: readonly SetDocument[], shown: string): AdmittedDocument[] {
  return validateDocuments<AdmittedDocument>(documents, shown, {
    what: 'set',
    fields: 'the fields of a set: name, template, and replicas or minIdle and max',
    key: ({ name }) => (typeof name === 'string' ? name : undefined),
    parse: (input) => {
      // The template's hash is the worker's to make.
      const parsed = parseRunnerSetInput(input, {
        hash: () => '',
        checkSchedule: scheduleError,
        policy: 'elsewhere',
      });
      if (!parsed.ok) return parsed;
      const { runner, ...spec } = parsed.spec;
      return {
        ok: true,
        spec: { input: input as unknown as RunnerSetInput, spec, warnings: runner.warnings },
      };
    },
  });
}
