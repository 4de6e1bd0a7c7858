/** `npm run audit`: asks the registry for advisories about what runs in production; where it does not answer, the snapshot, and says so. */
import { execFile } from 'node:child_process';
import { advisoriesOf, isSevere, SNAPSHOT, type Severity } from './advisories.ts';
import { PROJECT, productionPackages } from './lockFile.ts';

/** What `npm audit --json` prints: a report, or why there is none. */
interface Answer {
  readonly vulnerabilities?: Readonly<
    Record<string, { readonly severity: Severity; readonly range: string }>
  >;
  readonly message?: string;
  readonly error?: { readonly summary?: string };
}

const MAX_MS = 60_000;

/** Its exit status says nothing: it is that of a report with findings, and of none at all, alike. */
function queryRegistry(): Promise<Answer> {
  return new Promise((resolve) => {
    execFile(
      'npm',
      ['audit', '--omit=dev', '--package-lock-only', '--json', '--fetch-retries=0'],
      { cwd: PROJECT, timeout: MAX_MS, maxBuffer: 2 ** 26 },
      (error, stdout) => {
        try {
          resolve(JSON.parse(stdout) as Answer);
        } catch {
          resolve({ message: error?.message.split('\n')[0] ?? 'no JSON' });
        }
      },
    );
  });
}

const packages = productionPackages();
const { vulnerabilities, message, error } = await queryRegistry();
const found =
  vulnerabilities === undefined
    ? packages.flatMap((each) =>
        advisoriesOf(each, SNAPSHOT).map(({ id, severity }) => ({
          severity,
          what: `${each.name} ${each.version}: ${id}`,
        })),
      )
    : Object.entries(vulnerabilities).map(([name, { severity, range }]) => ({
        severity,
        what: `${name} ${range}`,
      }));
if (vulnerabilities === undefined) {
  console.log(
    `The registry gives no advisories (${message ?? error?.summary ?? 'no reason given'}).`,
  );
  console.log(
    `Compared with the snapshot of ${SNAPSHOT.date} instead: ${SNAPSHOT.advisories.length} advisories about ${new Set(SNAPSHOT.advisories.map((each) => each.package)).size} of ${packages.length} packages; ${SNAPSHOT.source}.`,
  );
} else console.log(`Asked the registry about ${packages.length} production packages.`);
for (const { severity, what } of found) console.log(`${severity}: ${what}`);
const severe = found.filter(({ severity }) => isSevere(severity)).length;
console.log(
  `${found.length} findings, ${severe} of them high or critical${severe === 0 ? '' : ': update these packages'}`,
);
if (severe > 0) process.exitCode = 1;
