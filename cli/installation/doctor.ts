/**
 * Implements `holdfast doctor`, which checks the environment of the worker and prints the command
 * that fixes each fault.
 */
import { runAllChecks } from '../../worker/checks/bootCheck.ts';
import { loadConfig } from '../../worker/settings/config.ts';
import { ConfigError } from '../../worker/settings/configError.ts';
import type { Finding } from '../../worker/checks/finding.ts';
import { EXIT } from '../shared/exit.ts';
import type { Output } from '../shared/output.ts';

type Env = Readonly<Record<string, string | undefined>>;

const MARK = { ok: 'ok      ', warning: 'warning ', error: 'error   ' } as const;

/**
 * Runs all checks and prints their findings.
 * @returns 0 if runners can work, 1 if they cannot, 2 if the settings are invalid
 */
export async function doctor(output: Output, env: Env): Promise<number> {
  const { findings, status } = await runChecks(env);
  output.result(
    { ok: status === EXIT.ok, findings },
    findings.flatMap(({ level, message, fix }) => [
      `${MARK[level]}${message}`,
      ...(fix === undefined ? [] : [`        fix: ${fix}`]),
    ]),
  );
  return status;
}

async function runChecks(env: Env): Promise<{ findings: Finding[]; status: number }> {
  let config;
  try {
    config = loadConfig(env);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return {
      findings: error.problems.map(({ setting, message }) => ({
        level: 'error',
        message: `${setting}: ${message}`,
      })),
      status: EXIT.usage,
    };
  }
  const warnings = config.warnings.map(({ setting, message }): Finding => ({
    level: 'warning',
    message: `${setting}: ${message}`,
  }));
  const findings = [...warnings, ...(await runAllChecks(config))];
  return {
    findings,
    status: findings.some(({ level }) => level === 'error') ? EXIT.failed : EXIT.ok,
  };
}
