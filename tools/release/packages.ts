/**
 * The two packages that are published from this repository. `npm run build:packages` writes their
 * folders in dist/packages/. Versions, license and dependencies come from package.json.
 */

/**
 * The specific part of a package. The common part, and what is derived from its code, is not
 * included.
 */
export interface PublishedPackage {
  readonly name: string;
  readonly description: string;
  /** Entry points, as paths in the package. */
  readonly exports?: Readonly<Record<string, string>>;
  /** Commands, as paths in the package. */
  readonly bin?: Readonly<Record<string, string>>;
  /**
   * Files and folders of the checkout that are in the package, at the same path or at another one.
   */
  readonly files: readonly (string | { readonly from: string; readonly to: string })[];
}

/** The plugin. Its code: these folders and files of dist/, and whatever they import. */
export const PLUGIN_CODE: readonly string[] = [
  'core',
  'workflows',
  'activities',
  'worker/index.js',
  'worker/codec/failureConverter.cjs',
];

/** The plugin, the contract and the workflows. */
export const PLUGIN: PublishedPackage = {
  name: 'holdfast',
  description:
    'Self-hosted CI runners on Kubernetes as durable Temporal workflows: a plugin for your Worker',
  exports: {
    '.': './dist/worker/index.js',
    './workflows': './dist/workflows/index.js',
    './contract': './dist/core/contract/index.js',
    './schemas/*': './schemas/*',
    // For holdfast-cli of the same version only; see docs/plugin.md.
    './internal/core/*': './dist/core/*',
    './internal/activities/*': './dist/activities/*',
    './internal/worker/*': './dist/worker/*',
  },
  files: [
    'CHANGELOG.md',
    'CONTRIBUTING.md',
    'LICENSE',
    'README.md',
    'SECURITY.md',
    'deploy',
    'docs',
    'examples',
    'schemas',
    'dist/supervisor/supervisor.mjs',
  ],
};

/**
 * The package of the command, the ready-made worker and the webhook. Its code is all of dist/ that
 * is not in the plugin.
 */
export const COMMAND: PublishedPackage = {
  name: 'holdfast-cli',
  description:
    'The command and the ready-made worker of Holdfast, self-hosted CI runners on Kubernetes',
  bin: { holdfast: './dist/cli/main.js' },
  files: ['LICENSE', { from: 'cli/README.md', to: 'README.md' }, 'dist/sbom.cdx.json'],
};
