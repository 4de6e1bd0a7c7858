/** Licenses of the production packages, and the licenses that are allowed. */
import type { LockedPackage } from './lockFile.ts';

/**
 * SPDX licenses that require attribution at most, and are compatible with the Apache License 2.0.
 */
export const ALLOWED_LICENSES: readonly string[] = [
  '0BSD',
  'Apache-2.0',
  'BSD-2-Clause',
  'BSD-3-Clause',
  'BlueOak-1.0.0',
  'CC-BY-4.0',
  'ISC',
  'MIT',
  'PSF-2.0',
  'Unlicense',
];

/** Licenses of packages without a license in package.json, from the text of their LICENSE file. */
const BY_TEXT: Readonly<Record<string, string>> = { unionfs: 'Unlicense' };

export function licenseOf({ name, license }: LockedPackage): string {
  return license ?? BY_TEXT[name] ?? 'none';
}

/**
 * Whether all parts of a license expression are allowed. An OR needs all parts too, so that no
 * choice is necessary.
 */
export function isAllowed(license: string): boolean {
  return license
    .replaceAll(/[()]/g, '')
    .split(/ AND | OR /)
    .every((part) => ALLOWED_LICENSES.includes(part));
}

/** docs/licenses.md. */
export function licensePage(packages: readonly LockedPackage[]): string {
  const byLicense = Map.groupBy(packages, licenseOf);
  const rows = [...byLicense]
    .toSorted(([a], [b]) => a.localeCompare(b, 'en'))
    .map(([license, its]) => {
      const names = [...new Set(its.map(({ name }) => name))].toSorted((a, b) =>
        a.localeCompare(b, 'en'),
      );
      return `| ${license} | ${names.length} | ${names.join(', ')} |`;
    });
  return `# Licenses of production packages

The production packages of package-lock.json, those of other platforms included, by license (SPDX). \`npm run licenses\` generates this page. A test compares it with the lock file, and
each license with the allow-list in \`tools/supplyChain/licenses.ts\`. The texts are in the packages.

| License | Packages | |
|---|---|---|
${rows.join('\n')}
`;
}
