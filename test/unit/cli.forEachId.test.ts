/** One action for several IDs of a command. */
import { describe, expect, test } from '@jest/globals';
import { CliError, EXIT } from '../../cli/shared/exit.ts';
import { forEachId, type IdResult } from '../../cli/shared/forEachId.ts';
import { Output, type OutputForm } from '../../cli/shared/output.ts';

function recorded(form: OutputForm): { output: Output; written: { out: string; err: string } } {
  const written = { out: '', err: '' };
  const output = new Output(
    {
      stdout: { write: (text: string) => void (written.out += text) },
      stderr: { write: (text: string) => void (written.err += text) },
      env: {},
      interactive: false,
    },
    form,
  );
  return { output, written };
}

const RESULTS: Readonly<Record<string, IdResult>> = {
  a: { document: { id: 'a' }, lines: ['a: fine'] },
  b: { document: { id: 'b' }, lines: ['b: fine'] },
  long: { document: { id: 'long' }, lines: ['Id: long', 'Phase: Idle'] },
  bad: { document: { id: 'bad' }, lines: ['bad: failed'], failed: true },
};

async function act(id: string): Promise<IdResult> {
  const result = RESULTS[id];
  if (result === undefined) throw new CliError('not_found', `no runner ${id}`);
  return result;
}

describe('text', () => {
  test.each([
    [['a'], 'a: fine\n', EXIT.ok],
    [['a', 'b'], 'a: fine\nb: fine\n', EXIT.ok],
    [['a', 'a'], 'a: fine\n', EXIT.ok],
    [['a', 'long'], 'a: fine\n\nId: long\nPhase: Idle\n', EXIT.ok],
    [['bad'], 'bad: failed\n', EXIT.failed],
    [['bad', 'a'], 'bad: failed\na: fine\n', EXIT.failed],
  ])('%j', async (ids, out, status) => {
    const { output, written } = recorded('text');
    expect(await forEachId(output, 'runners', ids, act)).toBe(status);
    expect(written).toEqual({ out, err: '' });
  });

  test('one of several that fails is printed and decides the status; the others are shown', async () => {
    const { output, written } = recorded('text');
    expect(await forEachId(output, 'runners', ['a', 'missing', 'b'], act)).toBe(EXIT.notFound);
    expect(written).toEqual({
      out: 'a: fine\nb: fine\n',
      err: expect.stringContaining('missing') as unknown,
    });
  });
});

test('the only one that fails throws', async () => {
  const { output } = recorded('text');
  await expect(forEachId(output, 'runners', ['missing'], act)).rejects.toMatchObject({
    code: 'not_found',
  });
});

test('a document: one as itself, several as a list', async () => {
  const one = recorded('json');
  await forEachId(one.output, 'runners', ['a'], act);
  expect(JSON.parse(one.written.out)).toEqual({ id: 'a' });
  const two = recorded('json');
  expect(await forEachId(two.output, 'runners', ['a', 'missing'], act)).toBe(EXIT.notFound);
  expect(JSON.parse(two.written.out)).toEqual({ runners: [{ id: 'a' }] });
  expect(JSON.parse(two.written.err)).toMatchObject({ error: { code: 'not_found' } });
  const names = recorded('name');
  await forEachId(names.output, 'runners', ['a', 'b'], act);
  expect(names.written.out).toBe('a\nb\n');
});
