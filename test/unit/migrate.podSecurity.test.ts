/** Levels of Pod Security: a case for each control of the standards. */
import { expect, test } from '@jest/globals';
import { podSecurity } from '../../cli/migrate/podSecurityLevel.ts';
import { POD_SECURITY_CASES } from '../support/podSecurityCases.ts';

test.each(POD_SECURITY_CASES)('%s', (_what, pod, level, reason) => {
  const found = podSecurity(pod);
  expect(found.level).toBe(level);
  const withReason: unknown = expect.arrayContaining([reason]);
  expect(found.reasons).toEqual(reason === undefined ? [] : withReason);
});
