import { describe, expect, test } from '@jest/globals';
import type { SetRoutingInfo } from '../../../core/contract/index.ts';
import { missingImplicitLabels } from '../../../core/domain/implicitLabels.ts';
import { evaluateSetLabels } from '../../../worker/checks/setLabelsCheck.ts';

describe('labels that GitHub adds to runners and that a set lacks', () => {
  test.each([
    [['self-hosted'], ['linux', 'X64']],
    [
      ['Self-Hosted', 'gpu'],
      ['linux', 'X64'],
    ],
    [['self-hosted', 'Linux'], ['X64']],
    [['self-hosted', 'ARM64'], ['linux']],
    [['self-hosted', 'linux', 'x64'], []],
    [['self-hosted', 'windows', 'x64'], []],
    // Jobs name such a set by its single label, as with GitHub's scale sets.
    [['build-pool'], []],
    [[], []],
  ])('%j: %j', (labels, missing) => {
    expect(missingImplicitLabels('github', labels)).toEqual(missing);
  });

  test('plain commands have none', () => {
    expect(missingImplicitLabels(undefined, ['self-hosted'])).toEqual([]);
  });

  test('the doctor warns about each set that lacks labels, and not about sets whose labels it cannot read', () => {
    const routing = { ciServer: 'github', scope: 'acme', scopeKind: 'organization' } as const;
    const findings = evaluateSetLabels(
      new Map([
        ['set-bare', { ...routing, labels: ['self-hosted'] }],
        ['set-whole', { ...routing, labels: ['self-hosted', 'linux', 'x64'] }],
        ['set-silent', undefined],
      ]),
    );
    expect(findings).toEqual([
      {
        level: 'warning',
        message: expect.stringMatching(/^set bare: .*"linux" and "X64"/) as unknown,
        fix: expect.any(String) as unknown,
      },
    ]);
  });
});

describe('a set with a webhook next to a scale set', () => {
  const webhook = (labels: string[], scope = 'acme'): SetRoutingInfo => ({
    ciServer: 'github',
    labels: [...labels, 'linux', 'x64'],
    scope,
    scopeKind: 'organization',
  });
  const scaleSet: SetRoutingInfo = { labels: ['GPU'], scope: 'Acme', scopeKind: 'organization' };
  const messages = (other: SetRoutingInfo): string[] =>
    evaluateSetLabels(
      new Map([
        ['set-assigned', scaleSet],
        ['set-told', other],
      ]),
    ).flatMap(({ message }) => (message.includes('scale set') ? [message] : []));

  test('with its labels is warned about', () => {
    expect(messages(webhook(['gpu']))).toEqual([expect.stringContaining('sets assigned')]);
  });

  test.each([
    ['other labels', webhook(['arm'])],
    ['another scope', webhook(['gpu'], 'rival')],
  ])('with %s is not warned about', (_what, other) => {
    expect(messages(other)).toEqual([]);
  });
});
