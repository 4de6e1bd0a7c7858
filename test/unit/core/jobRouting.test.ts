import { describe, expect, test } from '@jest/globals';
import { chooseSet, type CoveringSet } from '../../../core/domain/jobRouting.ts';
import type { ScopeKind } from '../../../core/contract/index.ts';

const set = (name: string, scope: string, labels: string[], scopeKind: ScopeKind = scope.includes('/') ? 'repository' : 'organization'): CoveringSet => ({
  workflowId: `set-${name}`,
  cover: { labels, scope, scopeKind },
});
const SETS = [
  set('plain', 'acme', ['self-hosted', 'linux']),
  set('gpu', 'acme', ['self-hosted', 'Linux', 'GPU']),
  set('app', 'acme/app', ['linux']),
  set('b-twin', 'beta', ['linux', 'one']),
  set('a-twin', 'beta', ['linux', 'two']),
  set('big', 'big', ['linux'], 'enterprise'),
  set('unlabelled', 'gamma', ['self-hosted']),
];

describe('the set for a job', () => {
  test.each<[what: string, repository: string, labels: string[], enterprise: string | undefined, chosen: string | undefined]>([
    ['every label but self-hosted counts', 'acme/web', ['self-hosted', 'linux'], undefined, 'plain'],
    ['self-hosted need not be asked for', 'acme/web', ['linux'], undefined, 'plain'],
    ['upper and lower case are one', 'ACME/Web', ['SELF-HOSTED', 'gpu', 'LINUX'], undefined, 'gpu'],
    ['of equal sets the narrower one', 'acme/app', ['linux'], undefined, 'app'],
    ['fewest labels beyond the job\'s before the narrower scope', 'acme/app', ['linux', 'gpu'], undefined, 'gpu'],
    ['else by name', 'beta/x', ['linux'], undefined, 'a-twin'],
    ['a label that nobody has', 'acme/web', ['linux', 'arm64'], undefined, undefined],
    ['GitHub\'s own runners', 'acme/web', ['ubuntu-latest'], undefined, undefined],
    ['an unknown owner', 'other/web', ['linux'], undefined, undefined],
    ['an owner whose name begins alike', 'acme-labs/web', ['linux'], undefined, undefined],
    ['another repository of the same name', 'other/app', ['linux'], undefined, undefined],
    ['an enterprise', 'other/web', ['linux'], 'BIG', 'big'],
    ['an enterprise with an organization\'s name is not the organization', 'other/web', ['linux'], 'acme', undefined],
    ['an organization with the enterprise\'s name is not the enterprise', 'big/web', ['linux'], undefined, undefined],
    ['self-hosted alone is for any set', 'gamma/x', ['self-hosted'], undefined, 'unlabelled'],
    ['no label at all (a group was asked for) is for any set', 'gamma/x', [], undefined, 'unlabelled'],
    ['a label twice is one', 'acme/web', ['linux', 'Linux'], undefined, 'plain'],
    ['more labels than a runner can have', 'acme/web', Array.from({ length: 101 }, () => 'linux'), undefined, undefined],
  ])('%s', (_what, repository, labels, enterprise, chosen) => {
    for (const sets of [SETS, SETS.toReversed()]) expect(chooseSet({ repository, labels }, enterprise, sets)?.workflowId).toBe(chosen && `set-${chosen}`);
  });
});
