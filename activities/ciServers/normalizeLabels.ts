import type { CiServerKind } from '../../core/domain/ciServerKind.ts';
import { normalizeGitHubLabels } from './github/labels.ts';

const NORMALIZERS: Readonly<Record<CiServerKind, (labels: readonly string[]) => string[]>> = {
  github: normalizeGitHubLabels,
};

/** Returns labels as the CI server compares them. Two normalized labels are the same if their texts are. */
export function normalizeLabels(kind: CiServerKind, labels: readonly string[]): string[] {
  return NORMALIZERS[kind](labels);
}
