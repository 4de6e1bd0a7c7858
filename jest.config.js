import { existsSync } from 'node:fs';

/** Tests of one kind: what they need is told in docs/testing.md. */
const project = (displayName, folders, more = {}) => ({
  displayName,
  testEnvironment: 'node',
  roots: folders.map((folder) => `<rootDir>/${folder}`),
  testMatch: ['**/*.test.ts'],
  extensionsToTreatAsEsm: ['.ts'],
  transform: {
    '^.+\\.ts$': [
      '@swc/jest',
      {
        jsc: { target: 'es2022', parser: { syntax: 'typescript' } },
        module: { type: 'es6' },
        sourceMaps: 'inline',
      },
    ],
  },
  ...more,
});

/**
 * Tests that use the lab. What they need is fetched before the first of them (`setup` is a file of test/support/setup), and the lab
 * is taken down after the last. A run of other projects leaves alone the lab that a run at the same time uses.
 */
const labProject = (displayName, folders, setup, more = {}) =>
  project(displayName, folders, {
    globalSetup: `<rootDir>/test/support/setup/${setup}.ts`,
    globalTeardown: '<rootDir>/test/support/globalTeardown.ts',
    ...more,
  });

/** The part of test/temporal that `npm test` plays: one way through each workflow, and what a CI server is owed at a runner's end. */
const SLICE = [
  'lifecycle',
  'unregistration',
  'deregistration',
  'runnerSetDemand',
  'jobInterrupted',
  'sweep',
];

const sliceFiles = SLICE.map((name) => `test/temporal/${name}.test.ts`);
const missing = sliceFiles.filter((file) => !existsSync(new URL(file, import.meta.url)));
if (missing.length > 0) throw new Error(`files of SLICE do not exist: ${missing.join(', ')}`);

/** @type {import('jest').Config} */
export default {
  // Which of them a command runs: tools/test/tiers.ts.
  projects: [
    project('unit', ['test/unit']),
    project('replay', ['test/replay'], { testMatch: ['**/replay.test.ts'] }),
    project('changes', ['test/replay/changes']),
    project('process', ['test/process']),
    labProject('slice', ['test/temporal'], 'temporal', {
      testMatch: sliceFiles.map((file) => `**/${file}`),
      setupFiles: ['<rootDir>/test/support/setup/workflowsInMainThread.ts'],
    }),
    labProject('temporal', ['test/temporal'], 'temporal'),
    labProject('gitea', ['test/gitea'], 'gitea'),
    labProject('cluster', ['test/cluster'], 'cluster'),
    labProject('attacks', ['test/attacks'], 'node'),
    labProject('node', ['test/node'], 'node'),
    labProject('tools', ['tools'], 'node'),
    labProject('nightly', ['test/nightly'], 'nightly'),
  ],
  // Longer than what waits in a test by itself, so that it says for what.
  testTimeout: 120_000,
  // Two files at a time, however many cores there are: they share one lab, and most of what they do is wait for it.
  maxWorkers: 2,
  // Each in a process that is replaced when it has grown, because what test files import is not always freed
  // (https://github.com/jestjs/jest/issues/14605).
  workerIdleMemoryLimit: '1500MB',
};
