import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { randomBytes } from 'node:crypto';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client, Connection } from '@temporalio/client';
import {
  ApplicationFailure,
  defaultPayloadConverter,
  type DataConverter,
  type LoadedDataConverter,
  type Payload,
  type SerializationContext,
} from '@temporalio/common';
import { afterAll, beforeEach, describe, expect, test } from '@jest/globals';
import { parseSweepInput } from '../../../core/input/sweep.ts';
import { CodecKeyFile } from '../../../worker/codec/codecKeyFile.ts';
import { parseCodecKeys } from '../../../worker/codec/codecKeys.ts';
import {
  dataConverterOf,
  createEncryptedDataConverter,
  encrypts,
} from '../../../worker/codec/dataConverter.ts';
import { EncryptionCodec, PayloadKeyError } from '../../../worker/codec/encryptionCodec.ts';
import { payloadRejection, type PayloadFacts } from '../../../worker/codec/payloadGate.ts';
import { failureMessage, failureText } from '../../../cli/shared/encodedFields.ts';

const folder = mkdtempSync(join(tmpdir(), 'holdfast-codec-'));
afterAll(() => rmSync(folder, { recursive: true }));
const path = join(folder, 'keys');
const newKey = (): string => randomBytes(32).toString('base64');
const OLD = `old ${newKey()}`;
const NEW = `new ${newKey()}`;

/** Replaces a file atomically, as the kubelet does in a mounted Secret. */
function write(...lines: string[]): void {
  writeFileSync(`${path}.next`, lines.join('\n'));
  renameSync(`${path}.next`, path);
}
const codecWith = (...lines: string[]): EncryptionCodec => {
  write(...lines);
  return new EncryptionCodec(new CodecKeyFile(path));
};
/** The codec of a client. */
const loaded = (dataConverter: DataConverter): LoadedDataConverter =>
  new Client({ connection: Connection.lazy(), dataConverter }).options.loadedDataConverter;
const plain = (value: unknown): Payload => defaultPayloadConverter.toPayload(value) as Payload;
const value = (payload: Payload | undefined): unknown =>
  defaultPayloadConverter.fromPayload(payload as Payload);
const metadata = (payload: Payload | undefined): Record<string, string> =>
  Object.fromEntries(
    Object.entries(payload?.metadata ?? {}).map(([name, bytes]) => [
      name,
      Buffer.from(bytes).toString(),
    ]),
  );

describe('the file of the keys', () => {
  test('has one key per line, the current one first; comments and empty lines are ignored', () => {
    expect(
      parseCodecKeys(`# rotated in May\n\n${NEW}\r\n  ${OLD}  \n`).map(({ id }) => id),
    ).toEqual(['new', 'old']);
  });

  test.each([
    ['nothing', '# none yet\n', /^has no key: .*openssl rand -base64 32/],
    ['a key without an id', `${NEW}\n${newKey()}`, /^line 2 must be /],
    ['a key that is too short', `a ${randomBytes(16).toString('base64')}`, /^line 1 must be /],
    ['a key that is too long', `a ${randomBytes(33).toString('base64')}`, /^line 1 must be /],
    ['an invalid id', `a/b ${newKey()}`, /^line 1 must be /],
    ['an id twice', `a ${newKey()}\na ${newKey()}`, /^line 2 repeats /],
  ])('%s: the error names the line, and never its content', (_what, text, message) => {
    expect(() => parseCodecKeys(text)).toThrow(message);
    for (const word of text.split(/\s+/).filter((each) => each.length > 20))
      expect(() => parseCodecKeys(text)).not.toThrow(word);
  });

  test('is missing: the error names its path', () => {
    expect(() => new CodecKeyFile(join(folder, 'none'))).toThrow(
      `cannot read ${join(folder, 'none')} (ENOENT): check the path and its permissions`,
    );
    expect(() => dataConverterOf(join(folder, 'none'))).toThrow(
      'HOLDFAST_CODEC_KEY_FILE: cannot read ',
    );
  });

  test('is read again when it changes; while it is unreadable the previous keys are used, with one warning', () => {
    write(OLD);
    const warnings: string[] = [];
    const file = new CodecKeyFile(path, ({ message }) => warnings.push(message));
    const ids = (): string[] => file.keys().map(({ id }) => id);
    expect(ids()).toEqual(['old']);
    write('# half written');
    expect(ids()).toEqual(['old']);
    expect(ids()).toEqual(['old']);
    rmSync(path);
    expect(ids()).toEqual(['old']);
    expect(warnings).toEqual([
      expect.stringMatching(
        /^HOLDFAST_CODEC_KEY_FILE: .*keys has no key: .*; the keys of before are used on$/,
      ),
      expect.stringMatching(/cannot read .*keys \(ENOENT\)/),
    ]);
    write(NEW, OLD);
    expect(ids()).toEqual(['new', 'old']);
    expect(warnings).toHaveLength(2);
  });
});

const contextOf = (workflowId: string, namespace = 'default'): SerializationContext => ({
  type: 'workflow',
  namespace,
  workflowId,
});

describe('payloads that are accepted if encryption is required', () => {
  const bound = { namespace: 'default', workflowId: 'runner-a' };
  test.each<[what: string, facts: Partial<PayloadFacts>, accepted: boolean]>([
    ['for this workflow', {}, true],
    ['not encrypted', { encrypted: false }, false],
    ['not encrypted, of an SDK without context', { encrypted: false, context: undefined }, false],
    ['encrypted, of an SDK without context', { bound: {}, context: undefined }, true],
    ['for another workflow', { context: contextOf('runner-b') }, false],
    ['for another namespace', { context: contextOf('runner-a', 'prod') }, false],
    ['for no workflow', { bound: {} }, false],
    [
      'for no workflow, where listed',
      { bound: {}, unboundWorkflowIds: ['set-*', 'runner-*'] },
      true,
    ],
    [
      'for another workflow, where listed',
      {
        context: contextOf('runner-b'),
        unboundWorkflowIds: ['*'],
      },
      false,
    ],
    ['of a Schedule', { context: contextOf('runner-a-2026-11-26T00:00:00Z') }, true],
    ['of a workflow with a longer id', { context: contextOf('runner-a-2') }, false],
    [
      'of an activity',
      {
        context: { type: 'activity', namespace: 'default', workflowId: 'runner-a', isLocal: false },
      },
      true,
    ],
    [
      'of an activity of another workflow',
      {
        context: { type: 'activity', namespace: 'default', workflowId: 'runner-b', isLocal: false },
      },
      false,
    ],
  ])('%s', (_what, facts, accepted) => {
    const reason = payloadRejection({
      encrypted: true,
      bound,
      context: contextOf('runner-a'),
      unboundWorkflowIds: [],
      ...facts,
    });
    expect(reason === undefined).toBe(accepted);
  });
});

describe('the codec', () => {
  const secret = { env: { TOKEN: 'hunter2' } };
  let encrypted: Payload | undefined;
  beforeEach(async () => {
    [encrypted] = await codecWith(OLD).encode([plain(secret)]);
  });

  test('encrypts data and metadata of the payload, and adds the key id as metadata', async () => {
    expect(metadata(encrypted)).toEqual({
      encoding: 'binary/encrypted',
      'encryption-cipher': 'aes-256-gcm',
      'encryption-key-id': 'old',
    });
    const raw = Buffer.from(encrypted?.data ?? []).toString('latin1');
    for (const marker of ['hunter2', 'TOKEN', 'json/plain']) expect(raw).not.toContain(marker);
    const [decrypted] = await codecWith(OLD).decode([encrypted as Payload]);
    expect(metadata(decrypted)).toEqual({ encoding: 'json/plain' });
    expect(value(decrypted)).toEqual(secret);
  });

  test('the workflow of a payload is authenticated metadata', async () => {
    const codec = codecWith(OLD);
    const [bound] = await codec.encode([plain(secret)], contextOf('runner-a'));
    expect(metadata(bound)).toMatchObject({
      'encryption-namespace': 'default',
      'encryption-workflow-id': 'runner-a',
    });
    expect((await codec.decode([bound as Payload])).map(value)).toEqual([secret]);
    const moved = { ...bound?.metadata, 'encryption-workflow-id': Buffer.from('runner-b') };
    await expect(codec.decode([{ ...bound, metadata: moved }])).rejects.toThrow(PayloadKeyError);
  });

  test('if encryption is required, a rejected payload is replaced by the reason', async () => {
    const sender = codecWith(OLD);
    const rejections: unknown[] = [];
    const receiver = new EncryptionCodec(new CodecKeyFile(path), {
      unboundWorkflowIds: [],
      onRejected: (rejection) => rejections.push(rejection),
    });
    const context = contextOf('runner-a');
    const own = await sender.encode([plain(secret)], context);
    const others = await sender.encode([plain(secret)], contextOf('runner-b'));
    const read = (await receiver.decode([...own, ...others, plain(secret)], context)).map(value);
    expect(read).toEqual([
      secret,
      expect.stringMatching(/^holdfast: rejected payload: /),
      expect.stringMatching(/^holdfast: rejected payload: /),
    ]);
    expect(rejections).toMatchObject([{ workflowId: 'runner-a' }, { workflowId: 'runner-a' }]);
    expect(parseSweepInput(read[2])).toMatchObject({ ok: false, errors: [{ field: 'input' }] });
  });

  test('encrypts equal payloads differently', async () => {
    const [one, two] = await codecWith(OLD).encode([plain(secret), plain(secret)]);
    expect(one?.data).not.toEqual(two?.data);
  });

  test('after a rotation the first key encrypts, and all keys decrypt', async () => {
    const codec = codecWith(OLD);
    write(NEW, OLD);
    const [fresh] = await codec.encode([plain('now')]);
    expect(metadata(fresh)['encryption-key-id']).toBe('new');
    expect((await codec.decode([encrypted as Payload, fresh as Payload])).map(value)).toEqual([
      secret,
      'now',
    ]);
  });

  test('unencrypted payloads are read unchanged, with and without keys', async () => {
    for (const codec of [codecWith(NEW), new EncryptionCodec(undefined)])
      expect((await codec.decode([plain('from before')])).map(value)).toEqual(['from before']);
  });

  test('a missing key: the error names its id and the setting', async () => {
    await expect(codecWith(NEW).decode([encrypted as Payload])).rejects.toThrow(
      'the key "old", which is missing in the file of HOLDFAST_CODEC_KEY_FILE',
    );
  });

  test('no keys: nothing is encrypted, and the error names the setting', async () => {
    const none = new EncryptionCodec(undefined);
    expect(await none.encode([plain('x')])).toEqual([plain('x')]);
    await expect(none.decode([encrypted as Payload])).rejects.toThrow(
      'the key "old"; set HOLDFAST_CODEC_KEY_FILE',
    );
  });

  test('another key with the same id: the error says so', async () => {
    await expect(codecWith(`old ${newKey()}`).decode([encrypted as Payload])).rejects.toThrow(
      'a key of the ID "old"',
    );
  });

  test.each<[string, (payload: Payload) => Payload]>([
    [
      'a bit of the data',
      ({ data, ...rest }) => ({
        ...rest,
        data: Buffer.from(data ?? []).map((byte, index) => (index === 20 ? byte ^ 1 : byte)),
      }),
    ],
    [
      'its end',
      ({ data, ...rest }) => ({ ...rest, data: Buffer.from(data ?? []).subarray(0, -1) }),
    ],
    ['all of the data', (rest) => ({ ...rest, data: new Uint8Array() })],
    [
      'the cipher',
      (payload) => ({
        ...payload,
        metadata: { ...payload.metadata, 'encryption-cipher': Buffer.from('none') },
      }),
    ],
    [
      'the id of the key',
      (payload) => ({
        ...payload,
        metadata: { ...payload.metadata, 'encryption-key-id': Buffer.from('alias') },
      }),
    ],
  ])('%s was changed: the payload is rejected', async (_what, change) => {
    const [, key = ''] = OLD.split(' ');
    // "alias" is the same key under another id, so only authentication detects the change.
    await expect(
      codecWith(OLD, `alias ${key}`).decode([change(encrypted as Payload)]),
    ).rejects.toThrow(/payload was changed/);
  });

  test('unknown metadata is dropped', async () => {
    const { metadata: beside = {}, data } = encrypted as Payload;
    const [decrypted] = await codecWith(OLD).decode([
      { metadata: { ...beside, encoded: Buffer.from('x') }, ...(data ? { data } : {}) },
    ]);
    expect(metadata(decrypted)).toEqual({ encoding: 'json/plain' });
  });
});

describe('failures', () => {
  const failureOf = (message: string): Error =>
    ApplicationFailure.create({ message, cause: new Error(`${message}, because of hunter2`) });

  test('with keys: message and stack trace are in an encrypted payload, which the command decrypts', async () => {
    write(OLD);
    const converter = loaded(createEncryptedDataConverter({ keyFile: path }));
    const raw = converter.failureConverter.errorToFailure(
      failureOf('no node for hunter2'),
      converter.payloadConverter,
    );
    const [encodedAttributes] = await (converter.payloadCodecs[0] as EncryptionCodec).encode([
      raw.encodedAttributes as Payload,
    ]);
    const [ofCause] = await (converter.payloadCodecs[0] as EncryptionCodec).encode([
      raw.cause?.encodedAttributes as Payload,
    ]);
    const sent = {
      ...raw,
      encodedAttributes,
      cause: { ...raw.cause, encodedAttributes: ofCause },
    } as Parameters<typeof failureText>[1];
    expect(JSON.stringify(sent)).not.toContain('hunter2');
    expect(await failureText(converter, sent)).toBe(
      'no node for hunter2: no node for hunter2, because of hunter2',
    );
    expect(await failureMessage(converter, sent ?? {})).toBe('no node for hunter2');
    await expect(failureText(loaded(dataConverterOf(undefined)), sent)).rejects.toThrow(
      'the key "old"; set HOLDFAST_CODEC_KEY_FILE',
    );
  });

  test('of the server itself are unencrypted and unchanged', async () => {
    write(OLD);
    const converter = loaded(createEncryptedDataConverter({ keyFile: path }));
    expect(await failureText(converter, { message: 'activity StartToClose timeout' })).toBe(
      'activity StartToClose timeout',
    );
  });
});

test('a codec encrypts if it has keys, or is not that of Holdfast', () => {
  write(OLD);
  expect(encrypts(undefined)).toBe(false);
  expect(encrypts(dataConverterOf(undefined))).toBe(false);
  expect(encrypts(dataConverterOf(path))).toBe(true);
  expect(
    encrypts({
      payloadCodecs: [
        { encode: async (payloads) => payloads, decode: async (payloads) => payloads },
      ],
    }),
  ).toBe(true);
});
