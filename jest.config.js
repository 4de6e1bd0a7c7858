/** @type {import('jest').Config} */
export default {
  testEnvironment: 'node',
  roots: ['<rootDir>/test'],
  testMatch: ['**/*.test.ts'],
  extensionsToTreatAsEsm: ['.ts'],
  transform: {
    '^.+\\.ts$': [
      '@swc/jest',
      { jsc: { target: 'es2022', parser: { syntax: 'typescript' } }, module: { type: 'es6' }, sourceMaps: 'inline' },
    ],
  },
  globalTeardown: './test/support/globalTeardown.ts',
  testTimeout: 60_000,
  // One file after the other: they share one lab, and what they measure is time. In a process of its own that is replaced when it has
  // grown, because what test files import is not always freed (https://github.com/jestjs/jest/issues/14605).
  maxWorkers: 1,
  workerIdleMemoryLimit: '1500MB',
};
