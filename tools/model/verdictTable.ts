/** The modules that together decide the verdict on a runner. */
export * from '../../workflows/runner/endFacts.ts';
export * from '../../workflows/runner/verdict.ts';
