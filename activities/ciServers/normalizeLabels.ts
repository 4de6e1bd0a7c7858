import type { CiServerKind } from '../../core/domain/ciServerKind.ts';
import { normalizeGitHubLabels, normalizeGitHubRunnerLabels } from './github/labels.ts';
import { normalizeGiteaLabels } from './gitea/labels.ts';

type Normalizer = (labels: readonly string[]) => string[];

const NORMALIZERS: Readonly<Record<CiServerKind, Record<'job' | 'runner', Normalizer>>> = {
  github: { job: normalizeGitHubLabels, runner: normalizeGitHubRunnerLabels },
  gitea: { job: normalizeGiteaLabels, runner: normalizeGiteaLabels },
};

/**
 * Returns the labels of a job in the form in which the CI server compares them. Two normalized
 * labels are the same if their strings are equal.
 */
export function normalizeLabels(kind: CiServerKind, labels: readonly string[]): string[] {
  return NORMALIZERS[kind].job(labels);
}

/**
 * Returns the labels of a runner in the form in which the CI server compares them, including those
 * that it gives to every runner.
 */
export function normalizeRunnerLabels(kind: CiServerKind, labels: readonly string[]): string[] {
  return NORMALIZERS[kind].runner(labels);
}
