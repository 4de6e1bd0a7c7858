/** Validates the documents of `holdfast set apply`. */
import { scheduleError } from '../../activities/runnerSet/schedules.ts';
import type { RunnerSetInput } from '../../core/contract/index.ts';
import { parseRunnerSetInput, type SetSpec } from '../../core/input/runnerSet.ts';
import { validateDocuments } from './admitDocuments.ts';
import type { SetDocument } from './setDocuments.ts';

/** Validated document of a set. */
export interface AdmittedDocument {
  readonly input: RunnerSetInput;
  readonly spec: SetSpec;
  /** Warnings about input that may not have the intended effect. */
  readonly warnings: readonly string[];
}

/**
 * Validates the documents of sets.
 * @param shown - name of the file, for messages
 * @throws CliError `invalid_input` with every error of every document
 */
export function admitSets(documents: readonly SetDocument[], shown: string): AdmittedDocument[] {
  return validateDocuments<AdmittedDocument>(documents, shown, {
    what: 'set',
    fields: 'the fields of a set: name, template, and replicas or minIdle and max',
    key: ({ name }) => (typeof name === 'string' ? name : undefined),
    parse: (input) => {
      // Only the worker needs the hash of the template.
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
