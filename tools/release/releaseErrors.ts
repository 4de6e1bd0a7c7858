import { parse } from 'yaml';

/** Texts of the files that contain the version. */
export interface ReleaseFiles {
  readonly packageJson: string;
  readonly packageLock: string;
  readonly changelog: string;
  /** deploy/chart/Chart.yaml */
  readonly chart: string;
  /** Files of .ci/quarantine. */
  readonly quarantined: readonly string[];
}

/**
 * Returns the reasons against a release of the tag, each with its fix. Empty if it can be released.
 * @param tag - `v` and the version
 */
export function releaseErrors(
  tag: string,
  { packageJson, packageLock, changelog, chart, quarantined }: ReleaseFiles,
): string[] {
  const { version, repository } = JSON.parse(packageJson) as {
    version: string;
    repository?: unknown;
  };
  const lock = JSON.parse(packageLock) as { version: string };
  const { version: chartVersion, appVersion } = parse(chart) as {
    version: string;
    appVersion: string;
  };
  const section = changelogSection(changelog, version);
  return [
    ...(tag === `v${version}`
      ? []
      : [
          `the tag is ${tag}, and package.json has version ${version}: tag v${version}, or run "npm version ${tag.replace(/^v/, '')} --no-git-tag-version"`,
        ]),
    ...(lock.version === version
      ? []
      : [`package-lock.json has version ${lock.version}: run "npm install --package-lock-only"`]),
    ...(chartVersion === version && appVersion === version
      ? []
      : [
          `deploy/chart/Chart.yaml has version ${chartVersion} and appVersion ${appVersion}: give both ${version}`,
        ]),
    ...(section === undefined
      ? [
          `CHANGELOG.md has no section "## [${version}] - YYYY-MM-DD"; rename the section [Unreleased]`,
        ]
      : []),
    ...(section === ''
      ? [`CHANGELOG.md: section [${version}] is empty; write what users notice`]
      : []),
    ...(repository === undefined
      ? [
          'package.json has no "repository": name the one that this is published from; npm takes no provenance that says another',
        ]
      : []),
    ...(quarantined.length === 0
      ? []
      : [`.ci/quarantine must be empty, got ${quarantined.join(', ')}; fix these tests`]),
  ];
}

/** Returns the section of a version in the changelog, or `undefined` if there is none. */
export function changelogSection(changelog: string, version: string): string | undefined {
  const sections = changelog.split(/^## /m).slice(1);
  const found = sections.find(
    (text) => text.startsWith(`[${version}] - `) && /^\[[^\]]+\] - \d{4}-\d{2}-\d{2}\n/.test(text),
  );
  return found?.slice(found.indexOf('\n')).trim();
}
