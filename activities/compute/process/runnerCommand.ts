import { ComputeError } from '../../ports/computeError.ts';
import type { PodRequest } from '../../../core/domain/pod.ts';

/**
 * Returns the command line of a runner process: the command of the request, otherwise that of the
 * worker, followed by the arguments of the request.
 * @throws ComputeError `invalid` if there is no command, or if it cannot be passed to a process
 */
export function runnerCommand(
  request: Pick<PodRequest, 'command' | 'args'>,
  byDefault: readonly string[] | undefined,
): readonly string[] {
  const command = request.command?.length ? request.command : (byDefault ?? []);
  if (command.length === 0 || command[0] === '') {
    throw new ComputeError(
      'invalid',
      "no command to run the runner with: set HOLDFAST_RUNNER_COMMAND for the worker, or the runner's `command`",
    );
  }
  const whole = [...command, ...(request.args ?? [])];
  if (whole.some((word) => word.includes('\0')))
    throw new ComputeError(
      'invalid',
      "the runner's `command` or `args` hold a NUL character, which no process can be given",
    );
  return whole;
}

/** Returns every reason why a request can never become a process, each with its fix. */
export function processErrors(
  request: Omit<PodRequest, 'identity'>,
  byDefault: readonly string[] | undefined,
  anyCommand: boolean,
): string[] {
  const { supervision } = request;
  if (request.untrusted === true)
    return [
      "untrusted: processes run as the worker's own user, and an outsider's change would, too; run it on Kubernetes",
    ];
  const brought = (['command', 'args', 'env'] as const).filter(
    (field) => request[field] !== undefined && Object.keys(request[field]).length > 0,
  );
  if (brought.length > 0 && !anyCommand) {
    return [
      `${brought.join(', ')}: this worker runs only its own command, without a container; remove it, or set HOLDFAST_ALLOW_ANY_COMMAND=true on the worker if every client that can start a workflow may run any command here`,
    ];
  }
  if (supervision?.mode === 'inject' || supervision?.mode === 'image')
    return ['supervisor: processes run without it; leave it out, or run on Kubernetes'];
  if (supervision !== undefined && supervision.onTerm !== 'stop')
    return [
      `onTerm: "${supervision.onTerm}" needs the supervisor, and processes run without it; leave it out, or run on Kubernetes`,
    ];
  if (request.proxy !== undefined || request.ca !== undefined)
    return [
      'proxy, ca: are put into pods; here a runner is a process, for which HOLDFAST_RUNNER_COMMAND may set the variables; leave them out, or run on Kubernetes',
    ];
  const ofCluster =
    request.volumeClaims?.findIndex(
      ({ dataSource, selector }) => dataSource !== undefined || selector !== undefined,
    ) ?? -1;
  if (ofCluster >= 0)
    return [
      `volumeClaims.${ofCluster}: dataSource and selector are a cluster's, and here a claim is a folder; leave them out, or run on Kubernetes`,
    ];
  try {
    runnerCommand(request, byDefault);
    validateEnvironment('env', request.env);
    return [];
  } catch (error) {
    if (error instanceof ComputeError) return [error.message];
    throw error;
  }
}

/**
 * Validates environment variables. The error contains the name of a variable, never its value,
 * which may be secret.
 * @param source - origin of the variables, for the message
 * @throws ComputeError `invalid` for a variable that cannot be passed to a process
 */
export function validateEnvironment(
  source: string,
  env: Readonly<Record<string, string>> = {},
): Readonly<Record<string, string>> {
  for (const [name, value] of Object.entries(env)) {
    if (name === '' || /[=\0]/.test(name))
      throw new ComputeError(
        'invalid',
        `${source}: ${JSON.stringify(name)} is not a valid name of an environment variable`,
      );
    if (value.includes('\0'))
      throw new ComputeError(
        'invalid',
        `${source}: the value of ${name} holds a NUL character, which no process can be given`,
      );
  }
  return env;
}

/**
 * Returns the environment that a runner process inherits: the paths of programs and files, and the
 * language. The rest of the worker's environment is left out, because it contains credentials.
 */
export function baseEnvironment(
  worker: Readonly<Record<string, string | undefined>>,
): Record<string, string> {
  return {
    PATH: worker['PATH'] || '/usr/local/bin:/usr/bin:/bin',
    HOME: worker['HOME'] || '/',
    LANG: worker['LANG'] || 'C.UTF-8',
    TMPDIR: worker['TMPDIR'] || '/tmp',
  };
}
