/** Checks the production packages for advisories: `npm run audit`. */
import { execFile } from 'node:child_process';
import { createCommand, runCommand } from '../shared/commandLine.ts';
import { advisoriesOf, isSevere, SNAPSHOT, type Severity } from './advisories.ts';
import { PROJECT, productionPackages, type LockedPackage } from './lockFile.ts';

/** Output of `npm audit --json`: a report, or the reason why there is none. */
interface AuditOutput {
  readonly vulnerabilities?: Readonly<
    Record<string, { readonly severity: Severity; readonly range: string }>
  >;
  readonly message?: string;
  readonly error?: { readonly summary?: string };
}

/** An advisory that affects a package. */
interface Finding {
  readonly severity: Severity;
  readonly what: string;
}

const TIMEOUT_MS = 60_000;

/** Runs `npm audit`. Its exit status is ignored: it is 1 with findings and 1 without a report. */
function queryRegistry(): Promise<AuditOutput> {
  return new Promise((resolve) => {
    execFile(
      'npm',
      ['audit', '--omit=dev', '--package-lock-only', '--json', '--fetch-retries=0'],
      { cwd: PROJECT, timeout: TIMEOUT_MS, maxBuffer: 2 ** 26 },
      (error, stdout) => {
        try {
          resolve(JSON.parse(stdout) as AuditOutput);
        } catch {
          resolve({ message: error?.message.split('\n')[0] ?? 'no JSON' });
        }
      },
    );
  });
}

function snapshotFindings(packages: readonly LockedPackage[]): Finding[] {
  return packages.flatMap((each) =>
    advisoriesOf(each, SNAPSHOT).map(({ id, severity }) => ({
      severity,
      what: `${each.name} ${each.version}: ${id}`,
    })),
  );
}

/** Returns the registry's findings, or those of the snapshot if it returned no report. */
async function findings(packages: readonly LockedPackage[]): Promise<Finding[]> {
  const { vulnerabilities, message, error } = await queryRegistry();
  if (vulnerabilities !== undefined) {
    console.log(`Checked ${packages.length} production packages against the registry.`);
    return Object.entries(vulnerabilities).map(([name, { severity, range }]) => ({
      severity,
      what: `${name} ${range}`,
    }));
  }
  const { advisories, date, source } = SNAPSHOT;
  const names = new Set(advisories.map((each) => each.package));
  const reason = message ?? error?.summary ?? 'no reason given';
  console.log(`The registry returned no advisories (${reason}).`);
  console.log(
    `Used the snapshot of ${date} instead: ${advisories.length} advisories about ${names.size} of ${packages.length} packages; ${source}.`,
  );
  return snapshotFindings(packages);
}

async function audit(): Promise<void> {
  const found = await findings(productionPackages());
  for (const { severity, what } of found) console.log(`${severity}: ${what}`);
  const severe = found.filter(({ severity }) => isSevere(severity)).length;
  console.log(
    `${found.length} findings, ${severe} of them high or critical${severe === 0 ? '' : ': update these packages'}`,
  );
  if (severe > 0) process.exitCode = 1;
}

await runCommand(
  createCommand(
    'npm run audit --',
    'Checks the production packages of package-lock.json for advisories at the npm registry, or in the snapshot tools/supplyChain/advisories.json if the registry returns none. Exits with 1 if an advisory is high or critical.',
  ).action(audit),
);
