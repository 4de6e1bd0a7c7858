/** One action for several IDs of a command, and `get` of several. */
import { describe, expect, test } from '@jest/globals';
import { CliError, EXIT } from '../../cli/shared/exit.ts';
import { printEach } from '../../cli/shared/getCommand.ts';
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

  test('one of several that fails is printed and determines the status; the others are shown', async () => {
    const { output, written } = recorded('text');
    expect(await forEachId(output, 'runners', ['a', 'missing', 'b'], act)).toBe(EXIT.notFound);
    expect(written).toEqual({
      out: 'a: fine\nb: fine\n',
      err: expect.stringContaining('missing') as unknown,
    });
  });
});

test('a single failing one throws', async () => {
  const { output } = recorded('text');
  await expect(forEachId(output, 'runners', ['missing'], act)).rejects.toMatchObject({
    code: 'not_found',
  });
});

test('a document: one object, several as a list', async () => {
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

test('all requests are sent before the first wait', async () => {
  const { output, written } = recorded('text');
  const asked: string[] = [];
  const ids = Array.from({ length: 25 }, (_, index) => `r${index}`);
  const status = await forEachId(output, 'runners', ids, async (id) => {
    asked.push(id);
    return async () => {
      expect(asked).toEqual(ids);
      if (id === 'r3') throw new CliError('failed', 'r3 is lost');
      return { document: { id }, lines: [id] };
    };
  });
  expect(status).toBe(EXIT.failed);
  expect(written.out.split('\n')).toHaveLength(25);
  expect(written.err).toContain('r3 is lost');
});

test('with a confirmation the next request waits for the response', async () => {
  const { output } = recorded('text');
  let open = 0;
  const seen: number[] = [];
  await forEachId(
    output,
    'sets',
    ['a', 'b', 'c'],
    async (id) => {
      seen.push(++open);
      await new Promise(setImmediate);
      open--;
      return { document: { id }, lines: [] };
    },
    1,
  );
  expect(seen).toEqual([1, 1, 1]);
});

describe('get of several', () => {
  const read =
    (states: Readonly<Record<string, boolean | 'unreachable'>>) =>
    async (id: string): Promise<IdResult & { ended: boolean }> => {
      const ended = states[id];
      if (ended === undefined) throw new CliError('not_found', `no runner ${id}`);
      if (ended === 'unreachable') throw new CliError('unreachable', 'no answer');
      return { document: { id }, lines: [id], ended };
    };

  test.each<[Record<string, boolean | 'unreachable'>, object]>([
    [
      { a: false, b: false },
      { status: EXIT.ok, ended: false },
    ],
    [
      { a: true, b: false },
      { status: EXIT.ok, ended: false },
    ],
    [
      { a: true, b: true },
      { status: EXIT.ok, ended: true },
    ],
    [{ a: true }, { status: EXIT.notFound, ended: true }],
    [{ a: false }, { status: EXIT.notFound, ended: false }],
    [
      { a: true, b: 'unreachable' },
      { ended: false, lost: { code: 'unreachable' } },
    ],
    [
      { a: 'unreachable', b: 'unreachable' },
      { ended: false, lost: { code: 'unreachable' } },
    ],
  ])('%j', async (states, expected) => {
    const { output } = recorded('text');
    expect(await printEach(output, 'runners', ['a', 'b'], read(states))).toMatchObject(expected);
  });
});
