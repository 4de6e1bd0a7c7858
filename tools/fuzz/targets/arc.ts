import { isDeepStrictEqual } from 'node:util';
import { convertArc } from '../../../cli/migrate/convertArc.ts';
import { migrationPlan } from '../../../cli/migrate/migrationPlan.ts';
import { setsYaml } from '../../../cli/migrate/setsYaml.ts';
import { admitSets } from '../../../cli/set/setAdmission.ts';
import { readSetDocuments } from '../../../cli/set/setDocuments.ts';
import { CliError } from '../../../cli/shared/exit.ts';
import { assertReadableMessage } from '../readableMessage.ts';
import { ARC_EXAMPLES } from '../examples.ts';
import { mutatedJson } from '../mutations.ts';
import { target } from '../target.ts';

export const arc = target(
  'arc',
  'objects of actions-runner-controller, for `holdfast migrate arc`',
  () => ({
    inputs: mutatedJson(ARC_EXAMPLES),
    run(value) {
      const { sets, skipped, errors } = convertArc([{ source: 'arc.yaml, document 1', value }], {
        release: 'linux',
        now: Date.parse('2026-03-01T00:00:00Z'),
      });
      for (const { field, message } of errors) assertReadableMessage(message, field);
      for (const { label, reason } of skipped) assertReadableMessage(reason, label);
      for (const { notes } of sets)
        for (const { field, text } of notes) assertReadableMessage(text, field);
      if (sets.length === 0) return;
      const text = setsYaml(
        sets,
        migrationPlan(sets, skipped, { file: 'sets.yaml', format: 'sets' }),
      );
      try {
        const read = admitSets(readSetDocuments(text, 'sets.yaml'), 'sets.yaml');
        if (
          !isDeepStrictEqual(
            read.map(({ input }) => input),
            sets.map(({ input }) => input),
          )
        )
          throw new Error('what was written is not what is read');
      } catch (error) {
        // It may have grown too long for one file.
        if (!(error instanceof CliError) || !error.message.includes('KiB long')) throw error;
      }
    },
  }),
);
