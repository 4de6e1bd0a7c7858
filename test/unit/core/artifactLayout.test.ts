import { describe, expect, test } from '@jest/globals';
import {
  isJUnitReport,
  jobRunOfStep,
  sharedDirKeys,
  stepPrefix,
  storagePathError,
  stepPath,
  type JobRunPath,
} from '../../../core/domain/artifactLayout.ts';

const RUN: JobRunPath = { repository: 'Acme/Web', job: 'integration', buildId: '0198-run' };

describe('the folder of a step', () => {
  test.each<[what: string, run: JobRunPath, folder: string]>([
    [
      'of a repository, in lower case',
      RUN,
      'artifacts/repositories/acme/web/integration/0198-run/test-e2e/2/',
    ],
    [
      'without a repository',
      { job: 'nightly', buildId: '0198-run' },
      'artifacts/jobs/nightly/0198-run/test-e2e/2/',
    ],
    [
      'of names with path separators, which are escaped',
      { job: '..', buildId: '../../x' },
      'artifacts/jobs/%2E%2E/%2E%2E%2F..%2Fx/test-e2e/2/',
    ],
    [
      'of a repository with path separators, which are escaped',
      { ...RUN, repository: '../..' },
      'artifacts/repositories/%2E%2E/%2E%2E/integration/0198-run/test-e2e/2/',
    ],
  ])('%s', (_what, run, folder) => {
    const path = stepPath(run, 'test', 'e2e');
    expect(stepPrefix(path, 2)).toBe(folder);
    expect(jobRunOfStep(path)).toEqual({
      path: path.replace(/\/test-e2e$/, ''),
      buildId: path.split('/').at(-2),
    });
  });

  test.each([
    '',
    'jobs/x/0198-run',
    'jobs/x/0198-run/test-e2e/1',
    'repositories/acme/web/x/0198-run',
    'repositories/acme/web/x/0198-run/test-e2e/1',
    'other/x/0198-run/test-e2e',
    'jobs//0198-run/test-e2e',
    '/jobs/x/0198-run/test-e2e',
    'artifacts/jobs/x/0198-run/test-e2e',
  ])('%j is invalid', (path) => {
    expect(jobRunOfStep(path)).toBeUndefined();
    expect(storagePathError({ path, sharedDirSources: [] })).toContain(
      "is not the folder of a job's step",
    );
  });
});

describe('a step can start with', () => {
  const path = 'jobs/x/0198-run/test-e2e';
  test.each<[what: string, key: string, may: boolean]>([
    ['the files of an earlier step', 'shared/jobs/x/0198-run/pre-rent/2.json', true],
    ['the files of an earlier attempt', 'shared/jobs/x/0198-run/test-e2e/1.json', true],
    ['not the files of another run', 'shared/jobs/x/0199-run/pre-rent/2.json', false],
    ['not the files of another job in that run', 'shared/jobs/y/0198-run/pre-rent/2.json', false],
    ['not the files of a repository', 'shared/repositories/x/0198-run/y/z/pre-rent/2.json', false],
    ['not the artifacts of a step', 'artifacts/jobs/x/0198-run/pre-rent/1/build-log.txt', false],
  ])('%s', (_what, key, may) => {
    expect(storagePathError({ path, sharedDirSources: [key] }) === undefined).toBe(may);
  });
});

test("snapshots of a step's attempts are searched from the last attempt on", () => {
  expect(sharedDirKeys('jobs/x/0198-run/test-e2e', 2)).toEqual([
    'shared/jobs/x/0198-run/test-e2e/2.json',
    'shared/jobs/x/0198-run/test-e2e/1.json',
  ]);
  expect(sharedDirKeys('jobs/x/0198-run/test-e2e', 0)).toEqual([]);
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
