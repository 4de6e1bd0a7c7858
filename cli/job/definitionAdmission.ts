/** Validates the documents of `holdfast job apply`. */
import { scheduleFault } from '../../activities/runnerSet/schedules.ts';
import { jobDefinitionId, type JobDefinitionInput } from '../../core/contract/index.ts';
import { parseJobDefinition, type DefinitionSpec } from '../../core/input/jobDefinition.ts';
import { admitDocuments } from '../set/admitDocuments.ts';
import type { SetDocument } from '../set/setDocuments.ts';

/** A document that is a declared job. */
export interface AdmittedDefinitionDocument {
  readonly input: JobDefinitionInput;
  readonly spec: DefinitionSpec;
  /** What will not do what its author may expect. */
  readonly warnings: readonly string[];
}

/** What is said of a file that holds none. */
export const NO_JOB =
  'holds no job: write name, repository, on, and the steps of test; see "holdfast job apply --help"';

/** @param shown - the file's name, for messages @throws CliError `invalid_input` with every error of every document */
export function admitDefinitions(
  documents: readonly SetDocument[],
  shown: string,
): AdmittedDefinitionDocument[] {
  return admitDocuments<AdmittedDefinitionDocument>(documents, shown, {
    what: 'job',
    fields: 'the fields of a declared job: name, repository, on, and the steps of test',
    key: ({ name, repository }) =>
      typeof name === 'string' && typeof repository === 'string'
        ? jobDefinitionId(repository, name)
        : undefined,
    parse: (input) => {
      const parsed = parseJobDefinition(input, {
        checkSchedule: scheduleFault,
        policy: 'elsewhere',
      });
      if (!parsed.ok) return parsed;
      const { warnings, ...spec } = parsed.spec;
      return { ok: true, spec: { input: input as unknown as JobDefinitionInput, spec, warnings } };
    },
  });
}
