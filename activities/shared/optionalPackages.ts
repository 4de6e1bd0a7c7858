/**
 * npm packages that only single settings need: optional peer dependencies of the package
 * `holdfast`.
 */

/**
 * Supported versions by package. `npm run build:packages` writes them into the manifest of
 * `holdfast`.
 */
export const OPTIONAL_PACKAGES: Readonly<Record<string, string>> = {
  '@aws-sdk/client-s3': '^3.1169.0',
  '@aws-sdk/lib-storage': '^3.1169.0',
  '@opentelemetry/api': '^1.9.0',
  '@opentelemetry/resources': '^1.30.1',
  '@opentelemetry/sdk-trace-base': '^1.30.1',
  '@temporalio/interceptors-opentelemetry': '^1.22.0',
};

/**
 * Loads a module that imports optional packages.
 * @param setting - the setting that needs them, as the user writes it
 * @throws Error if a package is not installed, with the package, its versions and the setting
 */
export async function loadOptional<T>(setting: string, load: () => Promise<T>): Promise<T> {
  try {
    return await load();
  } catch (error) {
    const name = missingPackage(error);
    const range = name === undefined ? undefined : OPTIONAL_PACKAGES[name];
    if (range === undefined) throw error;
    throw new Error(
      `${setting}: package "${name}" is not installed; run "npm install ${name}@VERSION" with a version of ${range}`,
      { cause: error },
    );
  }
}

/**
 * Returns the name of the package that an import did not find.
 * @returns `undefined` if the import failed for another reason
 */
export function missingPackage(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined;
  if ((error as NodeJS.ErrnoException).code !== 'ERR_MODULE_NOT_FOUND') return undefined;
  return /^Cannot find package '((?:@[^/']+\/)?[^/']+)/.exec(error.message)?.[1];
}
