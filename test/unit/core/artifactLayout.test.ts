import { describe, expect, test } from '@jest/globals';
import { isJUnitReport, sharedKeys, stepFolder, stepPath, type StoredRun } from '../../../core/domain/artifactLayout.ts';

const RUN: StoredRun = { repository: 'Acme/Web', job: 'integration', buildId: '0198-run' };

describe('the folder of a step', () => {
  test.each<[what: string, run: StoredRun, folder: string]>([
    ['of a repository: its case is no difference', RUN, 'artifacts/repositories/acme/web/integration/0198-run/test-e2e/2/'],
    ['of none', { job: 'nightly', buildId: '0198-run' }, 'artifacts/jobs/nightly/0198-run/test-e2e/2/'],
    ['no way out of it', { job: '..', buildId: '../../x' }, 'artifacts/jobs/%2E%2E/%2E%2E%2F..%2Fx/test-e2e/2/'],
    ['and not by a repository', { ...RUN, repository: '../..' }, 'artifacts/repositories/%2E%2E/%2E%2E/integration/0198-run/test-e2e/2/'],
  ])('%s', (_what, run, folder) => {
    expect(stepFolder(stepPath(run, 'test', 'e2e'), 2)).toBe(folder);
  });
});

test('what attempts at a step leave for the next is looked for in the last of them first', () => {
  expect(sharedKeys('jobs/x/0198-run/test-e2e', 2)).toEqual(['shared/jobs/x/0198-run/test-e2e/2.json', 'shared/jobs/x/0198-run/test-e2e/1.json']);
  expect(sharedKeys('jobs/x/0198-run/test-e2e', 0)).toEqual([]);
});

test.each([
  ['junit.xml', true],
  ['reports/junit_unit.xml', true],
  ['a/b/JUnit-e2e.XML', true],
  ['reports/unit.xml', false],
  ['junit/report.xml', false],
  ['junit.xml.gz', false],
])('%s is a JUnit report: %s', (path, is) => {
  expect(isJUnitReport(path)).toBe(is);
});
