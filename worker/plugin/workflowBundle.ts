/**
 * Holdfast's workflows as one file, bundled ahead of time. Bundling takes seconds and 100 MB of
 * memory at each start of a worker.
 */
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { mkdir, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { dirname, extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import {
  DefaultLogger,
  bundleWorkflowCode,
  type WorkerOptions,
  type WorkflowBundleWithSourceMap,
} from '@temporalio/worker';
import { FAILURE_CONVERTER_PATH } from '../codec/dataConverter.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
/**
 * Whether this is the published package. It contains JavaScript, and the bundles that
 * `npm run build` has written.
 */
const COMPILED = import.meta.url.endsWith('.js');
/**
 * Version of the SDK. It is part of a bundle's name, because a bundle contains workflow code of the
 * SDK that runs only with the same version.
 */
const { version: SDK_VERSION } = createRequire(import.meta.url)(
  '@temporalio/worker/package.json',
) as { version: string };
const PUBLISHED = {
  clear: join(ROOT, `workflow-bundle-${SDK_VERSION}.js`),
  encrypted: join(ROOT, `workflow-bundle-${SDK_VERSION}-encrypted.js`),
};
/** Files that a bundle in a checkout depends on. */
const SOURCES = [
  'core',
  'workflows',
  'package-lock.json',
  'worker/plugin/workflowBundle.ts',
  'worker/codec/failureConverter.cts',
];
const KEPT = join(ROOT, '.holdfast', 'workflow-bundles');
const KEPT_MS = 24 * 3_600_000;

/**
 * Returns the path of the workflows, to bundle them ahead of time. They are TypeScript in the
 * repository, and JavaScript in the published package.
 */
export function workflowsPath(): string {
  return join(ROOT, 'workflows', COMPILED ? 'index.js' : 'index.ts');
}

/**
 * Returns the path of the module that traces workflows. Add it to `workflowInterceptorModules` when
 * you bundle them ahead of time.
 */
export function workflowInterceptorsPath(workflows = workflowsPath()): string {
  return join(dirname(workflows), 'tracing', `interceptors${extname(workflows)}`);
}

/** Options with which users add their own code to the bundle. */
type BundleShaping = Pick<
  WorkerOptions,
  'workflowsPath' | 'workflowBundle' | 'interceptors' | 'bundlerOptions' | 'dataConverter'
>;

/**
 * Returns the options that give a Worker the workflows: none if it has its own, or a bundle made
 * ahead of time if its options match.
 */
export async function workflowSourceOptions(
  options: BundleShaping,
): Promise<Pick<WorkerOptions, 'workflowsPath' | 'workflowBundle'>> {
  if (options.workflowsPath !== undefined || options.workflowBundle !== undefined) return {};
  const { interceptors, bundlerOptions, dataConverter } = options;
  const { payloadConverterPath, failureConverterPath } = dataConverter ?? {};
  const own =
    (interceptors?.workflowModules?.length ?? 0) > 0 ||
    bundlerOptions !== undefined ||
    payloadConverterPath !== undefined ||
    ![undefined, FAILURE_CONVERTER_PATH].includes(failureConverterPath);
  if (own) return { workflowsPath: workflowsPath() };
  const failures = failureConverterPath === undefined ? 'clear' : 'encrypted';
  const codePath = COMPILED ? PUBLISHED[failures] : await cachedBundle(failures);
  return existsSync(codePath)
    ? { workflowBundle: { codePath } }
    : { workflowsPath: workflowsPath() };
}

/**
 * Encoding of failure messages that leave a workflow. It is the only part of a data converter that
 * changes the bundle.
 */
type Failures = keyof typeof PUBLISHED;

/**
 * Bundles the workflows. A worker evaluates their modules once, not for each workflow, because they
 * keep no state.
 * @param path - path of the module that exports them
 */
export async function bundleWorkflows(
  path = workflowsPath(),
  failures: Failures = 'clear',
): Promise<WorkflowBundleWithSourceMap> {
  const interceptors = workflowInterceptorsPath(path);
  const converter = failures === 'clear' ? {} : { failureConverterPath: FAILURE_CONVERTER_PATH };
  return await bundleWorkflowCode({
    workflowsPath: path,
    workflowInterceptorModules: [interceptors],
    preloadModules: [path, interceptors],
    logger: new DefaultLogger('ERROR'),
    ...converter,
  });
}

/**
 * Writes a bundle.
 * @param path - path of the file, which appears when it is complete
 */
export async function writeBundle(path: string, failures: Failures = 'clear'): Promise<void> {
  const { code } = await bundleWorkflows(workflowsPath(), failures);
  await mkdir(dirname(path), { recursive: true });
  const temporary = `${path}.${process.pid}.tmp`;
  await writeFile(temporary, code);
  await rename(temporary, path);
}

/**
 * Writes the bundles of the published package next to its compiled files.
 * @returns their paths
 */
export async function writePublishedBundles(): Promise<string[]> {
  for (const file of await readdir(ROOT))
    if (file.startsWith('workflow-bundle')) await rm(join(ROOT, file));
  await writeBundle(PUBLISHED.clear, 'clear');
  await writeBundle(PUBLISHED.encrypted, 'encrypted');
  return Object.values(PUBLISHED);
}

/**
 * Returns the path of a bundle of the current sources. It is reused if an earlier start has written
 * it.
 */
async function cachedBundle(failures: Failures): Promise<string> {
  const path = join(KEPT, `${await fingerprint()}-${failures}.js`);
  if (existsSync(path)) return path;
  await writeBundle(path, failures);
  for (const file of await readdir(KEPT)) {
    const other = join(KEPT, file);
    if (Date.now() - (await stat(other)).mtimeMs > KEPT_MS) await rm(other, { force: true });
  }
  return path;
}

async function fingerprint(): Promise<string> {
  const hash = createHash('sha256');
  for (const source of SOURCES) {
    const files = source.includes('.')
      ? [source]
      : (await readdir(join(ROOT, source), { recursive: true }))
          .filter((file) => file.endsWith('.ts'))
          .map((file) => join(source, file));
    for (const file of files.toSorted((a, b) => a.localeCompare(b)))
      hash.update(`${file}\0`).update(await readFile(join(ROOT, file)));
  }
  return hash.digest('hex').slice(0, 20);
}
