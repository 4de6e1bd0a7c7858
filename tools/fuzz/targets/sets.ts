import fc from 'fast-check';
import { stringify } from 'yaml';
import { admitSets } from '../../../cli/set/setAdmission.ts';
import { readSetDocuments } from '../../../cli/set/setDocuments.ts';
import { CliError } from '../../../cli/shared/exit.ts';
import { assertReadableMessage } from '../readableMessage.ts';
import { SET_EXAMPLES } from '../examples.ts';
import { mutatedJson, mutatedText } from '../mutations.ts';
import { target } from '../target.ts';

const YAML = [
  '\n---\n',
  '\n...\n',
  '&a ',
  '*a',
  '<<: *a\n',
  '<<: [*a, 1]\n',
  '!!binary ',
  '!!set ',
  '!!map ',
  '!x ',
  '? ',
  '- ',
  ': ',
  '|\n',
  '>-\n',
  '"',
  "'",
  '#',
  '{',
  '}',
  '[',
  ']',
  ',',
  '\t',
  '  ',
  '\n',
  '%YAML 1.1\n',
  '%TAG ! x\n',
  '~',
  '.inf',
  '.nan',
  '0x1f',
  '2001-01-01',
  'a: &b [*b]\n',
];
const TEXTS = SET_EXAMPLES.map((example) => stringify(example));
/** Sets that share a template, as people write them; and a bomb. */
const SHARED = `base: &base\n  labels: [linux]\n---\n- &one\n  name: one\n  replicas: 1\n  template: {organization: acme}\n- <<: *one\n  name: two\n`;
const BOMB = `a: &a [x, x]\n${'bcdefghijklmnopqrstuvwxyz'
  .split('')
  .map(
    (name, index) =>
      `${name}: &${name} [*${String.fromCharCode(97 + index)}, *${String.fromCharCode(97 + index)}]`,
  )
  .join('\n')}\n`;

export const sets = target('sets', 'files of `holdfast set apply`: YAML and JSON', () => ({
  inputs: fc.oneof(
    {
      arbitrary: mutatedJson([...SET_EXAMPLES, SET_EXAMPLES]).map(
        (value) => JSON.stringify(value) ?? '',
      ),
      weight: 2,
    },
    { arbitrary: mutatedText([...TEXTS, `${TEXTS.join('---\n')}`, SHARED, BOMB], YAML), weight: 3 },
  ),
  run(text) {
    try {
      admitSets(readSetDocuments(text, 'sets.yaml'), 'sets.yaml');
    } catch (error) {
      if (!(error instanceof CliError)) throw error;
      assertReadableMessage(error.message, 'set apply');
      for (const { field, message } of error.fields ?? []) assertReadableMessage(message, field);
    }
  },
}));
