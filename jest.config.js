/** Tests of one kind: what they run on is told in docs/testing.md. */
const project = (displayName, ...folders) => ({
  displayName,
  testEnvironment: 'node',
  roots: folders.map((folder) => `<rootDir>/test/${folder}`),
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
});

/** Those that use the lab take it down at their end; a run of the others leaves alone what a run beside it uses. */
const labProject = (...names) => ({
  ...project(...names),
  globalTeardown: '<rootDir>/test/support/globalTeardown.ts',
});

/** @type {import('jest').Config} */
export default {
  projects: [
    project('unit', 'unit'),
    project('replay', 'replay'),
    labProject('temporal', 'workflow'),
    labProject('integration', 'integration'),
    labProject('e2e', 'e2e', 'chaos', 'attacks'),
    // By hand: `npm run beside-arc`.
    ...(process.env.HOLDFAST_TEST_ARC === '1' ? [labProject('arc', 'arc')] : []),
  ],
  // Longer than what waits in a test by itself, so that it says for what.
  testTimeout: 120_000,
  // Two files beside each other, however many cores there are: they share one lab, and most of what they do is wait for it.
  maxWorkers: 2,
  // Each in a process that is replaced when it has grown, because what test files import is not always freed
  // (https://github.com/jestjs/jest/issues/14605).
  workerIdleMemoryLimit: '1500MB',
};
