/** A followed log whose streams end before the container does. */
import { expect, test } from '@jest/globals';
import { followLog, type LogSource } from '../../../activities/compute/kubernetes/followedLog.ts';

/** Returns a line with the timestamp of a second. */
const line = (second: number, text: string): string =>
  `2026-01-02T03:04:${String(second).padStart(2, '0')}.000000000Z ${text}\n`;

async function* streamOf(...chunks: readonly string[]): AsyncGenerator<Uint8Array> {
  for (const chunk of chunks) yield Buffer.from(chunk);
}

interface Opened {
  readonly sinceTime: string;
  readonly follow: boolean;
}

/** Follows streams, of which the last one is read after the container's end. */
async function follow(
  [first = [], ...others]: readonly (readonly string[])[],
  {
    signal = new AbortController().signal,
    ended,
  }: { signal?: AbortSignal; ended?: boolean[] } = {},
): Promise<{ text: string; opened: Opened[] }> {
  const opened: Opened[] = [];
  const ends = ended ?? others.map((_stream, index) => index === others.length - 1);
  const source: LogSource = {
    open: async (sinceTime, isFollowed) => {
      opened.push({ sinceTime, follow: isFollowed });
      const next = others[opened.length - 1];
      return next && streamOf(...next);
    },
    hasEnded: async () => ends[opened.length] ?? true,
  };
  const chunks: Uint8Array[] = [];
  for await (const chunk of followLog(streamOf(...first), source, signal)) chunks.push(chunk);
  return { text: Buffer.concat(chunks).toString(), opened };
}

test('a stream that ends with its container is read once more, for a last line without a newline', async () => {
  const all = [line(1, 'one'), line(2, 'two').trimEnd()];
  const { text, opened } = await follow([all, all]);
  expect(text).toBe('one\ntwo');
  expect(opened).toEqual([{ sinceTime: '2026-01-02T03:04:01.000000000Z', follow: false }]);
});

test('a stream that ends early is continued, and no line is lost or repeated', async () => {
  const { text, opened } = await follow([
    [line(1, 'a'), line(2, 'b'), line(2, 'c'), '2026-01-02T03:04:03.000000000Z cu'],
    [line(2, 'b'), line(2, 'c'), line(2, 'd'), line(3, 'cut'), line(4, 'e')],
    [line(4, 'e'), line(5, 'f')],
  ]);
  expect(text).toBe('a\nb\nc\nd\ncut\ne\nf\n');
  expect(opened.map((each) => each.follow)).toEqual([true, false]);
});

test.each([
  ['between two bytes of a character', [line(1, 'é').slice(0, -1), '\n']],
  ['within a timestamp', ['2026-01-02T03:04', ':01.000000000Z é\n']],
])('chunks may end %s', async (_where, chunks) => {
  const bytes = Buffer.from(chunks.join(''));
  const cut = Buffer.from(chunks[0] ?? '').length - 1;
  const halves = [bytes.subarray(0, cut), bytes.subarray(cut)];
  async function* split(): AsyncGenerator<Uint8Array> {
    yield* halves;
  }
  const source = { open: async () => undefined, hasEnded: async () => true };
  const read: Uint8Array[] = [];
  for await (const chunk of followLog(split(), source, AbortSignal.timeout(60_000)))
    read.push(chunk);
  expect(Buffer.concat(read).toString()).toBe('é\n');
});

test("the kubelet's own messages have no timestamp, and are passed on", async () => {
  const { text } = await follow([['unable to retrieve container logs\n'], []]);
  expect(text).toBe('unable to retrieve container logs\n');
});

test('it ends with its signal, without an error', async () => {
  const stop = new AbortController();
  const source: LogSource = {
    open: async () => streamOf(),
    hasEnded: async () => {
      stop.abort();
      throw stop.signal.reason;
    },
  };
  const read: string[] = [];
  for await (const chunk of followLog(streamOf(line(1, 'a')), source, stop.signal))
    read.push(Buffer.from(chunk).toString());
  expect(read).toEqual(['a\n']);
});

test('an error of the source ends it', async () => {
  const source: LogSource = {
    open: async () => undefined,
    hasEnded: async () => await Promise.reject(new Error('no connection')),
  };
  const reading = (async () => {
    for await (const _chunk of followLog(streamOf(), source, AbortSignal.timeout(60_000)));
  })();
  await expect(reading).rejects.toThrow('no connection');
});
