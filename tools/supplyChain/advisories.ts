/** A snapshot of advisories, for machines whose registry provides none. */
import { readFileSync } from 'node:fs';

export type Severity = 'low' | 'moderate' | 'high' | 'critical';

/** One advisory about one package. */
export interface Advisory {
  readonly id: string;
  readonly package: string;
  readonly severity: Severity;
  /** Versions from the first, if one is named, up to and without the second. */
  readonly vulnerable: readonly { readonly from?: string; readonly before: string }[];
}

export interface AdvisorySnapshot {
  /** YYYY-MM-DD. */
  readonly date: string;
  /** Where from, and how complete. */
  readonly source: string;
  readonly advisories: readonly Advisory[];
}

export const SNAPSHOT = JSON.parse(
  readFileSync(new URL('advisories.json', import.meta.url), 'utf8'),
) as AdvisorySnapshot;

/** Returns the advisories that affect a version. */
export function advisoriesOf(
  { name, version }: { readonly name: string; readonly version: string },
  { advisories }: AdvisorySnapshot,
): Advisory[] {
  return advisories.filter(
    (each) =>
      each.package === name &&
      each.vulnerable.some(
        ({ from = '0.0.0', before }) => compare(from, version) <= 0 && compare(version, before) < 0,
      ),
  );
}

/** Whether a finding must be fixed before a release. */
export const isSevere = (severity: Severity): boolean =>
  severity === 'high' || severity === 'critical';

/**
 * Compares the three numbers of two versions. A pre-release counts as the release after it, which
 * is the safe side for `from`.
 */
function compare(a: string, b: string): number {
  const [left, right] = [a, b].map(
    (version) => version.split(/[-+]/)[0]?.split('.').map(Number) ?? [],
  );
  for (const part of [0, 1, 2]) {
    const difference = (left?.[part] ?? 0) - (right?.[part] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}
