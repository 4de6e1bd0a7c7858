import fc from 'fast-check';
import { describe, expect, test } from '@jest/globals';
import { SecretMasker, secretVariants } from '../../../core/domain/secretMasker.ts';

const bytes = (text: string): Uint8Array => new Uint8Array(Buffer.from(text));

function censored(pieces: readonly string[], secrets: readonly string[]): string {
  const censor = new SecretMasker(secrets);
  return Buffer.concat([
    ...pieces.map((piece) => censor.push(bytes(piece))),
    censor.end(),
  ]).toString();
}

describe('secrets are masked', () => {
  test.each<[what: string, pieces: string[], secrets: string[], expected: string]>([
    ['in the middle', ['token=hunter22 ok'], ['hunter22'], 'token=******** ok'],
    ['at both ends', ['hunter22 x hunter22'], ['hunter22'], '******** x ********'],
    ['no secrets', ['token=hunter22'], [], 'token=hunter22'],
    ['across a chunk boundary', ['token=hun', 'ter22 ok'], ['hunter22'], 'token=******** ok'],
    ['byte by byte', Array.from('token=hunter22 ok'), ['hunter22'], 'token=******** ok'],
    ['with empty pieces between', ['hunter', '', '22'], ['hunter22'], '********'],
    ['not a text with only the prefix of a secret', ['hunter2', '3'], ['hunter22'], 'hunter23'],
    ['… at the end', ['hunter2'], ['hunter22'], 'hunter2'],
    ['a secret that starts within such a prefix', ['aaa', 'ab'], ['aaab'], 'a****'],
    ['two overlapping secrets', ['abcdef'], ['abcd', 'cdef'], '******'],
    [
      'two overlapping secrets, across a chunk boundary',
      ['abc', 'def'],
      ['abcd', 'cdef'],
      '******',
    ],
    [
      'a secret within another, across chunk boundaries',
      ['abc', 'd', 'efg'],
      ['bc', 'abcdef'],
      '******g',
    ],
    [
      'the shorter secret, if the longer one does not follow',
      ['abc', 'dxx'],
      ['bc', 'abcdef'],
      'a**dxx',
    ],
    ['a secret that overlaps with itself', ['abab', 'ab'], ['abab'], '******'],
    [
      'several lines',
      ['-----\nline one\nline', ' two\n'],
      ['line one\nline two'],
      '-----\n*****************\n',
    ],
    ['bytes of a character', ['pass=grü', 'ße!'], ['grüße'], 'pass=*******!'],
  ])('%s', (_what, pieces, secrets, expected) => {
    expect(censored(pieces, secrets)).toBe(expected);
  });

  test('in any division of the bytes into chunks', () => {
    const text = fc.string({ unit: fc.constantFrom('a', 'b', 'c'), maxLength: 40 });
    const secrets = fc.array(
      fc.string({ unit: fc.constantFrom('a', 'b', 'c'), minLength: 1, maxLength: 6 }),
      { maxLength: 4 },
    );
    fc.assert(
      fc.property(fc.array(text, { maxLength: 6 }), secrets, (pieces, hidden) => {
        const whole = pieces.join('');
        const covered = new Set<number>();
        for (const secret of hidden)
          for (let at = whole.indexOf(secret); at !== -1; at = whole.indexOf(secret, at + 1))
            for (let index = 0; index < secret.length; index++) covered.add(at + index);
        expect(censored(pieces, hidden)).toBe(
          Array.from(whole, (letter, at) => (covered.has(at) ? '*' : letter)).join(''),
        );
      }),
      { numRuns: 500 },
    );
  });

  test('only the possible beginning of a secret is held back', () => {
    const censor = new SecretMasker(['hunter22']);
    expect(Buffer.from(censor.push(bytes('plain line\nhun'))).toString()).toBe('plain line\n');
    expect(Buffer.from(censor.push(bytes('gry\n'))).toString()).toBe('hungry\n');
  });

  test('bytes that are not text stay unchanged', () => {
    const censor = new SecretMasker(['hunter22']);
    const all = Uint8Array.from({ length: 256 }, (_, index) => index);
    expect([...censor.push(all), ...censor.end()]).toEqual([...all]);
  });
});

describe('the variants of a secret', () => {
  test.each<[what: string, secret: string, forms: string[]]>([
    ['unchanged, and in base64 as Kubernetes shows it', 'hunter22', ['hunter22', 'aHVudGVyMjI=']],
    [
      'without the line break of its file',
      'hunter22\n',
      ['hunter22', 'aHVudGVyMjIK', 'aHVudGVyMjI='],
    ],
    ['line by line', 'first\nlast', ['first\nlast', 'first', 'last', 'Zmlyc3QKbGFzdA==']],
    [
      'short lines are no variants',
      '{\nlong enough\n}',
      ['{\nlong enough\n}', 'long enough', 'ewpsb25nIGVub3VnaAp9'],
    ],
    ['non-ASCII characters', 'grüße', ['grüße', 'Z3LDvMOfZQ==']],
  ])('%s', (_what, secret, forms) => {
    expect(secretVariants(secret)).toEqual(expect.arrayContaining(forms));
  });

  test('short lines are not included', () => {
    expect(secretVariants('{\nlong enough\n}')).not.toContain('{');
  });

  const secret = fc.string({ minLength: 12, maxLength: 40, unit: 'binary' });
  const more = fc.string({ maxLength: 5, unit: 'binary' });
  test.each<[what: string, encode: (text: string) => string]>([
    ['base64', (text) => Buffer.from(text).toString('base64')],
    ['base64url', (text) => Buffer.from(text).toString('base64url')],
    ['a URL', (text) => encodeURIComponent(text)],
    ['JSON', (text) => JSON.stringify(text)],
    ['hexadecimal', (text) => Buffer.from(text).toString('hex')],
    ['hexadecimal in capitals', (text) => Buffer.from(text).toString('hex').toUpperCase()],
  ])('within other text, in %s: the rest reveals less than a byte at each end', (_what, encode) => {
    fc.assert(
      fc.property(secret, more, more, (hidden, before, after) => {
        fc.pre(hidden.trim() === hidden && hidden.isWellFormed());
        const whole = encode(before + hidden + after);
        const shown = censored([whole], secretVariants(hidden));
        expect(shown.length - shown.replaceAll('*', '').length).toBeGreaterThanOrEqual(
          encode(hidden).replaceAll(/^"|"$|=/g, '').length - 3,
        );
      }),
      { numRuns: 300 },
    );
  });

  test('within the header of basic authentication', () => {
    const header = Buffer.from('bot:hunter22').toString('base64');
    expect(censored([`Authorization: Basic ${header}`], secretVariants('hunter22'))).toBe(
      `Authorization: Basic ${header.slice(0, 6)}**********`,
    );
  });

  test.each([[''], ['1'], ['yes']])('%j is not a secret', (secret) => {
    expect(secretVariants(secret)).toEqual([]);
  });
});
