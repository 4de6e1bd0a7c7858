import type { CiServerKind } from '../../core/domain/ciServerKind.ts';
import { normalizeGitHubLabels, normalizeGitHubRunnerLabels } from './github/labels.ts';

type Normalizer = (labels: readonly string[]) => string[];

const NORMALIZERS: Readonly<Record<CiServerKind, Record<'job' | 'runner', Normalizer>>> = {
  github: { job: normalizeGitHubLabels, runner: normalizeGitHubRunnerLabels },
};

/** Returns labels of a job as the CI server compares them. Two normalized labels are the same if their texts are. */
export function normalizeLabels(kind: CiServerKind, labels: readonly string[]): string[] {
  return NORMALIZERS[kind].job(labels);
}

/** Returns labels of a runner as the CI server compares them, with those that it gives to every runner. */
export function normalizeRunnerLabels(kind: CiServerKind, labels: readonly string[]): string[] {
  return NORMALIZERS[kind].runner(labels);
}
