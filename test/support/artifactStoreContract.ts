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
  test('keeps what it is given, byte by byte', async () => {
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

  test('keeps what is empty', async () => {
    const store = await make();
    await store.put('a/empty', []);
    expect(await store.get('a/empty')).toHaveLength(0);
  });

  test('says what it does not have', async () => {
    const store = await make();
    await store.put('a/b', [bytes('x')]);
    expect(await store.get('a/c')).toBeUndefined();
    expect(await store.get('x/y')).toBeUndefined();
  });

  test('what is put once more takes the place of what was there', async () => {
    const store = await make();
    await store.put('a/b', [bytes('a long first one')]);
    await store.put('a/b', [bytes('second')]);
    expect(Buffer.from((await store.get('a/b')) ?? []).toString()).toBe('second');
  });

  test('what breaks off is not kept, and leaves what was there', async () => {
    const store = await make();
    await expect(store.put('a/new', failingAfter('half'))).rejects.toThrow('the source broke off');
    expect(await store.get('a/new')).toBeUndefined();
    await store.put('a/b', [bytes('whole')]);
    await expect(store.put('a/b', failingAfter('half'))).rejects.toThrow('the source broke off');
    expect(Buffer.from((await store.get('a/b')) ?? []).toString()).toBe('whole');
  });

  test('two at once under one key: one of them, whole', async () => {
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
