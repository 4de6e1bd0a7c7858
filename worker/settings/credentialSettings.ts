/**
 * Reads the credentials from the settings: the shorthand for one GitHub token, inline JSON, or a
 * file.
 */
import { parseJson } from '../../core/domain/parseJson.ts';
import { readFileSync } from 'node:fs';
import {
  CredentialsError,
  credentialsForTaskQueue,
  parseCredentials,
  type Credentials,
} from '../../activities/ciServers/credentials.ts';
import type { ConfigProblem } from './configError.ts';
import { YamlError, yamlValue } from './yamlDocuments.ts';

type Env = Readonly<Record<string, string | undefined>>;

/**
 * Reads the credentials of this worker. They contain the location of each secret, and no secret.
 * @param taskQueue - the worker's; `undefined` if that setting is invalid
 * @param problems - receives every fault; the result is then incomplete
 * @param warnings - receives an entry if there is no credential at all
 */
export function readCredentials(
  set: Env,
  taskQueue: string | undefined,
  problems: ConfigProblem[],
  warnings: ConfigProblem[],
): Credentials {
  const given = givenCredentials(set, problems);
  const short = shorthand(set);
  if (given === undefined) return {};
  if (short && 'default' in given) {
    problems.push({
      setting: short.setting,
      message:
        'makes the credential "default", and HOLDFAST_CREDENTIALS or its file has one of that name too: remove one of the two',
    });
  }
  const all = short ? { ...given, default: short.credential } : given;
  if (Object.keys(all).length === 0) {
    warnings.push({
      setting: 'HOLDFAST_GITHUB_TOKEN_FILE',
      message:
        'no credential for a CI server is configured, so this worker runs plain commands only: set it to the path of a file with a GitHub token, or set HOLDFAST_GITHUB_TOKEN, HOLDFAST_CREDENTIALS or HOLDFAST_CREDENTIALS_FILE',
    });
    return {};
  }
  const parsed = parsedOf(all, set, short, problems);
  if (taskQueue === undefined) return parsed;
  const usable = credentialsForTaskQueue(parsed, taskQueue);
  if (Object.keys(parsed).length > 0 && Object.keys(usable).length === 0) {
    problems.push({
      setting: settingOf(set),
      message: `none of the credentials (${Object.keys(parsed).join(', ')}) is for the task queue "${taskQueue}": add it to the taskQueues of one, or set HOLDFAST_TASK_QUEUE`,
    });
  }
  return usable;
}

const settingOf = (set: Env): string =>
  set['HOLDFAST_CREDENTIALS_FILE'] !== undefined
    ? 'HOLDFAST_CREDENTIALS_FILE'
    : 'HOLDFAST_CREDENTIALS';

function parsedOf(
  all: object,
  set: Env,
  short: Shorthand | undefined,
  problems: ConfigProblem[],
): Credentials {
  try {
    return parseCredentials(all);
  } catch (error) {
    if (!(error instanceof CredentialsError)) throw error;
    for (const problem of error.problems) {
      const ofShorthand = short !== undefined && problem.startsWith('credentials.default');
      problems.push({ setting: ofShorthand ? short.setting : settingOf(set), message: problem });
    }
    return {};
  }
}

/** GitHub token from its own setting. */
interface Shorthand {
  readonly setting: string;
  readonly credential: object;
}

function shorthand(set: Env): Shorthand | undefined {
  const server = {
    ...(set['HOLDFAST_GITHUB_URL'] === undefined ? {} : { apiUrl: set['HOLDFAST_GITHUB_URL'] }),
    ...(set['HOLDFAST_GITHUB_RERUNS'] === 'true' ? { reruns: true } : {}),
  };
  if (set['HOLDFAST_GITHUB_TOKEN_FILE'] !== undefined) {
    return {
      setting: 'HOLDFAST_GITHUB_TOKEN_FILE',
      credential: {
        server: 'github',
        type: 'pat',
        tokenFile: set['HOLDFAST_GITHUB_TOKEN_FILE'],
        ...server,
      },
    };
  }
  if (set['HOLDFAST_GITHUB_TOKEN'] !== undefined) {
    return {
      setting: 'HOLDFAST_GITHUB_TOKEN',
      credential: { server: 'github', type: 'pat', tokenEnv: 'HOLDFAST_GITHUB_TOKEN', ...server },
    };
  }
  return undefined;
}

/**
 * Reads the credentials from inline JSON or a file.
 * @returns `undefined` if they are invalid, which is reported in `problems`
 */
function givenCredentials(
  set: Env,
  problems: ConfigProblem[],
): Record<string, unknown> | undefined {
  const inline = set['HOLDFAST_CREDENTIALS'];
  const file = set['HOLDFAST_CREDENTIALS_FILE'];
  const setting = inline !== undefined ? 'HOLDFAST_CREDENTIALS' : 'HOLDFAST_CREDENTIALS_FILE';
  const refuse = (message: string): undefined => {
    problems.push({ setting, message });
    return undefined;
  };
  let value: unknown = {};
  if (inline !== undefined) {
    value = parseJson(inline);
    // Do not repeat the text: it may contain a secret.
    if (value === undefined)
      return refuse(
        'is not JSON: write for example {"default":{"type":"pat","tokenFile":"/etc/holdfast/token"}}',
      );
  } else if (file !== undefined) {
    try {
      value = yamlValue(readFileSync(file, 'utf8'));
    } catch (error) {
      return refuse(
        error instanceof YamlError
          ? `${file} ${error.message}`
          : `cannot read ${file} (${(error as NodeJS.ErrnoException).code}): check the path and its permissions`,
      );
    }
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    return refuse('is not an object from credential names to credentials');
  return value as Record<string, unknown>;
}
