/** Labels that GitHub's own registration of a runner adds, and that Holdfast's runners lack. */
import type { CiServerKind } from './ciServerKind.ts';

const SYSTEMS = ['linux', 'windows', 'macos'];
const ARCHITECTURES = ['x64', 'arm64', 'arm'];

/**
 * Returns the labels that jobs for self-hosted runners often request, such as `runs-on:
 * [self-hosted, linux, x64]`, and that these runners lack. GitHub gives them to runners that
 * `config.sh` registers, so workflows that ran on such runners may request them. Labels without
 * `self-hosted` are for jobs that name them, which need no others.
 */
export function missingImplicitLabels(
  ciServer: CiServerKind | undefined,
  labels: readonly string[],
): string[] {
  const has = new Set(labels.map((label) => label.toLowerCase()));
  if (ciServer !== 'github' || !has.has('self-hosted')) return [];
  return [
    ...(SYSTEMS.some((label) => has.has(label)) ? [] : ['linux']),
    ...(ARCHITECTURES.some((label) => has.has(label)) ? [] : ['X64']),
  ];
}

/** The label of the architecture depends on the nodes, which the set does not know. */
const OTHER_ARCHITECTURE = ' ("ARM64" on ARM nodes)';

/** Returns what the missing labels mean, as a warning about a set. */
export function implicitLabelsText(set: string, missing: readonly string[]): string {
  const names = missing.map((label) => `"${label}"${label === 'X64' ? OTHER_ARCHITECTURE : ''}`);
  return `set ${set}: template.labels lacks ${names.join(' and ')}, which GitHub adds to runners of other installations; the set starts no runner for a job that requests them`;
}
