import { expect, test } from '@jest/globals';
import { omitUndefined } from '../../../core/domain/omitUndefined.ts';

test('omits exactly the fields without a value', () => {
  expect(
    Object.entries(omitUndefined({ a: undefined, b: null, c: 0, d: '', e: false, f: [undefined] })),
  ).toEqual([
    ['b', null],
    ['c', 0],
    ['d', ''],
    ['e', false],
    ['f', [undefined]],
  ]);
});

test('a field that may be absent fits an optional one', () => {
  const maybe: string | undefined = process.env['SURELY_NOT_SET'];
  const fits: { name: string; node?: string } = omitUndefined({ name: 'a', node: maybe });
  expect(Object.keys(fits)).toEqual(['name']);
});
