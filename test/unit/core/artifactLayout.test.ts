import { describe, expect, test } from '@jest/globals';
import { isJUnitReport, sharedSources, stepFolder, type StoredRun, type StoredStep } from '../../../core/domain/artifactLayout.ts';

const RUN: StoredRun = { repository: 'Acme/Web', job: 'integration', buildId: '0198-run' };

const STEP: StoredStep = { stage: 'test', name: 'e2e', attempt: 2 };

describe('the folder of a step', () => {
  test.each<[what: string, run: StoredRun, folder: string]>([
    ['of a repository: its case is no difference', RUN, 'artifacts/repositories/acme/web/integration/0198-run/test-e2e/2/'],
    ['of none', { job: 'nightly', buildId: '0198-run' }, 'artifacts/jobs/nightly/0198-run/test-e2e/2/'],
    ['no way out of it', { job: '..', buildId: '../../x' }, 'artifacts/jobs/%2E%2E/%2E%2E%2F..%2Fx/test-e2e/2/'],
    ['and not by a repository', { ...RUN, repository: '../..' }, 'artifacts/repositories/%2E%2E/%2E%2E/integration/0198-run/test-e2e/2/'],
  ])('%s', (_what, run, folder) => {
    expect(stepFolder(run, STEP)).toBe(folder);
  });
});

test('what steps leave for one another is looked for in the last of them first', () => {
  const before = [
    { stage: 'pre', name: 'rent', attempt: 1 },
    { stage: 'test', name: 'e2e', attempt: 1 },
    { stage: 'test', name: 'e2e', attempt: 2 },
  ] as const;
  const folder = 'shared/repositories/acme/web/integration/0198-run/';
  expect(sharedSources(RUN, before)).toEqual([`${folder}test-e2e/2.json`, `${folder}test-e2e/1.json`, `${folder}pre-rent/1.json`]);
  expect(sharedSources(RUN, [])).toEqual([]);
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
