/** The package.json of each published package. */
import { OPTIONAL_PACKAGES } from '../../activities/shared/optionalPackages.ts';
import { COMMAND, PLUGIN, type PublishedPackage } from './packages.ts';
import { importedPackages, type CodeOfPackages } from './codeOfPackages.ts';

type Versions = Readonly<Record<string, string>>;

/** Files of the checkout from which the manifests are derived. */
export interface Checkout {
  readonly manifest: {
    readonly version: string;
    readonly dependencies: Versions;
    /** Temporal's SDK, with the versions that it may have. */
    readonly peerDependencies: Versions;
    readonly [field: string]: unknown;
  };
  /** The newest version of Temporal's SDK that is tested: that of the lock file. */
  readonly sdk: string;
}

/** Fields that the packages have as the checkout has them. */
const SHARED = [
  'version',
  'gitHead',
  'keywords',
  'license',
  'repository',
  'homepage',
  'bugs',
  'type',
  'engines',
];

/** Returns the manifests. @throws Error that names an imported package which package.json lacks */
export function manifestsOf(
  { manifest, sdk }: Checkout,
  code: CodeOfPackages,
): { plugin: object; command: object } {
  const { dependencies, peerDependencies, version } = manifest;
  const isOptional = (name: string): boolean => name in OPTIONAL_PACKAGES;
  const isSdk = (name: string): boolean => name in peerDependencies;
  const exact = (name: string): string => {
    const found = dependencies[name];
    if (found === undefined) throw new Error(`package.json: dependencies: lacks "${name}"`);
    return found;
  };
  // The command is not loaded into another program: it brings the newest SDK that is tested, or
  // uses the older one of its project.
  const tested = (name: string): string =>
    name.startsWith('@temporalio/')
      ? `>=${(Object.values(peerDependencies)[0] ?? '').slice(1)} <=${sdk}`
      : exact(name);
  const needed = importedPackages(code.plugin);
  const range = (name: string): string =>
    OPTIONAL_PACKAGES[name] ?? peerDependencies[name] ?? exact(name);
  const optional = Object.keys(OPTIONAL_PACKAGES);
  const peers = [...needed.filter(isSdk), ...optional];
  const own = importedPackages(code.command).filter((name) => name !== PLUGIN.name);
  return {
    plugin: {
      ...head(PLUGIN, manifest),
      dependencies: record(
        needed.filter((name) => !isSdk(name) && !isOptional(name)),
        exact,
      ),
      peerDependencies: record(peers, range),
      peerDependenciesMeta: Object.fromEntries(optional.map((name) => [name, { optional: true }])),
    },
    command: {
      ...head(COMMAND, manifest),
      dependencies: { ...record([...own, ...peers], tested), [PLUGIN.name]: version },
    },
  };
}

function head(
  { name, description, exports, bin, files }: PublishedPackage,
  manifest: Readonly<Record<string, unknown>>,
): object {
  const paths = files.map((file) => (typeof file === 'string' ? file : file.to));
  const shared = SHARED.flatMap((field) => (field in manifest ? [[field, manifest[field]]] : []));
  return {
    name,
    description,
    ...(Object.fromEntries(shared) as object),
    ...(exports && { exports }),
    ...(bin && { bin }),
    files: [...new Set(['dist', ...paths.map((path) => path.replace(/\/.*/, ''))])].toSorted(),
  };
}

function record(
  names: readonly string[],
  version: (name: string) => string,
): Record<string, string> {
  return Object.fromEntries([...new Set(names)].toSorted().map((name) => [name, version(name)]));
}
