/** The test commands, and which jest projects (jest.config.js) each of them runs. */

export interface Tier {
  /** The command that a reader types. */
  readonly command: string;
  readonly projects: readonly string[];
  /** Value of HOLDFAST_REQUIRE, unless the user sets it: components that must not be missing. */
  readonly require?: string;
  readonly jestArgs?: readonly string[];
}

const INTEGRATION = ['changes', 'process', 'temporal', 'gitea', 'cluster'];
const E2E = ['attacks', 'node'];

/** Most tests wait for real components: with two files at a time, two cores are half idle. */
const THREE_FILES = ['--maxWorkers', '3'];

export const TIERS = {
  quick: {
    command: 'npm test',
    projects: ['unit', 'replay', 'slice'],
    require: 'temporal',
    jestArgs: THREE_FILES,
  },
  unit: { command: 'npm run test:unit', projects: ['unit'], jestArgs: ['--maxWorkers', '100%'] },
  integration: { command: 'npm run test:integration', projects: INTEGRATION },
  e2e: { command: 'npm run test:e2e', projects: E2E },
  tools: { command: 'npm run test:tools', projects: ['tools'] },
  nightly: { command: 'npm run test:nightly', projects: ['nightly'] },
  all: {
    command: 'npm run test:all',
    projects: ['unit', 'replay', ...INTEGRATION, ...E2E, 'tools'],
    require: 'all',
    jestArgs: THREE_FILES,
  },
} as const satisfies Record<string, Tier>;

export type TierName = keyof typeof TIERS;

export const isTierName = (name: string | undefined): name is TierName =>
  name !== undefined && name in TIERS;

/** The folder of each project, and what it tests. */
const FOLDERS: Readonly<Record<string, readonly [folder: string, what: string]>> = {
  changes: ['test/replay/changes', 'whether a replay notices a changed workflow'],
  process: ['test/process', 'local processes and HTTP servers'],
  temporal: ['test/temporal', 'Temporal'],
  gitea: ['test/gitea', 'Gitea with its runner'],
  cluster: ['test/cluster', 'a Kubernetes API server and S3'],
  attacks: ['test/attacks', 'attacks'],
  node: ['test/node', 'pods on a kubelet and on KWOK, the chart'],
  tools: ['tools', 'tools'],
  nightly: ['test/nightly', 'chaos with fresh seeds'],
};

/**
 * Returns one line for each command that runs test files which this tier has left out.
 * @param listFiles lists the test files under a folder
 */
export function leftOut(tier: Tier, listFiles: (folder: string) => readonly string[]): string[] {
  if (tier.projects.length === 1) return [];
  return (['integration', 'e2e', 'tools', 'nightly'] as const).flatMap((name) => {
    const { command, projects }: Tier = TIERS[name];
    const missing = projects.flatMap((project) => {
      const known = FOLDERS[project];
      return known === undefined || tier.projects.includes(project) ? [] : [known];
    });
    if (missing.length === 0) return [];
    const count = missing.reduce((sum, [folder]) => sum + listFiles(folder).length, 0);
    return [
      `  ${command.padEnd(24)}  ${count} files: ${missing.map(([, what]) => what).join('; ')}`,
    ];
  });
}

/**
 * Returns the arguments for jest.
 * @param args - arguments of the user. A path given to `npm test` selects from all tests.
 */
export function jestArgs(
  tier: TierName,
  args: readonly string[],
  isPath: (argument: string) => boolean,
): string[] {
  const { projects, jestArgs = [] }: Tier = TIERS[tier];
  // If an option is given twice, jest makes a list of its values.
  const own = args.some((argument) => argument.startsWith('--maxWorkers')) ? [] : jestArgs;
  if (args.some((argument) => argument.startsWith('--selectProjects'))) return [...own, ...args];
  const selected =
    tier === 'quick' && args.some(isPath) ? [...TIERS.all.projects, 'nightly'] : projects;
  return [...own, ...args, '--selectProjects', ...selected];
}
