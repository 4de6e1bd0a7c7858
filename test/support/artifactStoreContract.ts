/** The contract of artifact stores. */
import { randomBytes } from 'node:crypto';
import { expect, test } from '@jest/globals';
import type { ArtifactStore } from '../../activities/artifacts/artifactStore.ts';

const bytes = (text: string): Uint8Array => Buffer.from(text);

async function* failingAfter(piece: string): AsyncGenerator<Uint8Array> {
  yield await Promise.resolve(bytes(piece));
  throw new Error('the source broke off');
}

/** @param make - creates an empty store */
export function artifactStoreContract(make: () => Promise<ArtifactStore>): void {
  test('keeps the exact bytes', async () => {
    const store = await make();
    const content = randomBytes(300_000);
    await store.put('a/b/c.bin', [
      content.subarray(0, 1),
      content.subarray(1, 200_000),
      new Uint8Array(),
      content.subarray(200_000),
    ]);
    expect(Buffer.from((await store.get('a/b/c.bin')) ?? []).equals(content)).toBe(true);
  });

  test('keeps an empty object', async () => {
    const store = await make();
    await store.put('a/empty', []);
    expect(await store.get('a/empty')).toHaveLength(0);
  });

  test('reports missing objects', async () => {
    const store = await make();
    await store.put('a/b', [bytes('x')]);
    expect(await store.get('a/c')).toBeUndefined();
    expect(await store.get('x/y')).toBeUndefined();
  });

  test('a second put replaces the object', async () => {
    const store = await make();
    await store.put('a/b', [bytes('a long first one')]);
    await store.put('a/b', [bytes('second')]);
    expect(Buffer.from((await store.get('a/b')) ?? []).toString()).toBe('second');
  });

  test('an aborted put is not stored, and keeps the existing object', async () => {
    const store = await make();
    await expect(store.put('a/new', failingAfter('half'))).rejects.toThrow('the source broke off');
    expect(await store.get('a/new')).toBeUndefined();
    await store.put('a/b', [bytes('whole')]);
    await expect(store.put('a/b', failingAfter('half'))).rejects.toThrow('the source broke off');
    expect(Buffer.from((await store.get('a/b')) ?? []).toString()).toBe('whole');
  });

  test('two concurrent puts under one key: one of them, complete', async () => {
    const store = await make();
    const contents = ['a', 'b'].map((letter) => letter.repeat(200_000));
    await Promise.all(
      contents.map(
        async (content) =>
          await store.put('a/b', [bytes(content.slice(0, 100_000)), bytes(content.slice(100_000))]),
      ),
    );
    expect(contents).toContain(Buffer.from((await store.get('a/b')) ?? []).toString());
  });
}
