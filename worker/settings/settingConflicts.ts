/** Conflicts between settings that are valid individually. */
import type { ConfigProblem } from './configError.ts';
import type { SettingName, Settings } from './settings.ts';

type Env = Readonly<Record<string, string | undefined>>;

/** Pairs of settings of which at most one may be set. */
const ALTERNATIVES: readonly (readonly [SettingName, SettingName])[] = [
  ['HOLDFAST_GITHUB_TOKEN', 'HOLDFAST_GITHUB_TOKEN_FILE'],
  ['HOLDFAST_CREDENTIALS', 'HOLDFAST_CREDENTIALS_FILE'],
  ['HOLDFAST_WEBHOOK_SECRET', 'HOLDFAST_WEBHOOK_SECRET_FILE'],
  ['HOLDFAST_TIMEOUTS', 'HOLDFAST_TIMEOUTS_FILE'],
  ['HOLDFAST_STORE_VOLUME_CLAIM', 'HOLDFAST_STORE_BUCKET'],
  ['HOLDFAST_JOB_CLAIM_SIZE', 'HOLDFAST_STORE_VOLUME_CLAIM'],
  ['HOLDFAST_JOB_CLAIM_SIZE', 'HOLDFAST_STORE_BUCKET'],
];

const BUCKET_SETTINGS: readonly SettingName[] = [
  'HOLDFAST_STORE_PREFIX',
  'HOLDFAST_STORE_ENDPOINT',
  'HOLDFAST_STORE_REGION',
  'HOLDFAST_STORE_FORCE_PATH_STYLE',
  'HOLDFAST_STORE_SECRET',
];

/**
 * Returns the errors of settings that are valid individually, but conflict with each other.
 * @param parsed - absent if a setting is invalid
 */
export function settingConflicts(set: Env, parsed: Settings | undefined): ConfigProblem[] {
  return [
    ...alternativeErrors(set),
    ...versioningErrors(set),
    ...(parsed === undefined ? [] : codecErrors(set, parsed)),
    ...storageErrors(set),
    ...(parsed === undefined ? [] : valueErrors(parsed)),
  ];
}

function alternativeErrors(set: Env): ConfigProblem[] {
  const problems: ConfigProblem[] = [];
  for (const [one, other] of ALTERNATIVES) {
    if (set[one] !== undefined && set[other] !== undefined)
      problems.push({ setting: one, message: `${other} is set too: keep one of the two` });
  }
  return problems;
}

function versioningErrors(set: Env): ConfigProblem[] {
  const problems: ConfigProblem[] = [];
  const versioning: [SettingName, SettingName] = [
    'TEMPORAL_DEPLOYMENT_NAME',
    'TEMPORAL_WORKER_BUILD_ID',
  ];
  for (const [one, other] of [versioning, versioning.toReversed() as typeof versioning]) {
    if (set[one] !== undefined && set[other] === undefined)
      problems.push({
        setting: other,
        message: `is missing while ${one} is set: set both, or neither`,
      });
  }
  return problems;
}

function codecErrors(set: Env, parsed: Settings): ConfigProblem[] {
  const problems: ConfigProblem[] = [];
  if (parsed.HOLDFAST_CODEC_REQUIRED === 'true' && set['HOLDFAST_CODEC_KEY_FILE'] === undefined)
    problems.push({
      setting: 'HOLDFAST_CODEC_REQUIRED',
      message: 'needs the keys: set HOLDFAST_CODEC_KEY_FILE',
    });
  if (
    parsed.HOLDFAST_CODEC_REQUIRED === 'false' &&
    set['HOLDFAST_CODEC_UNBOUND_WORKFLOWS'] !== undefined
  )
    problems.push({
      setting: 'HOLDFAST_CODEC_UNBOUND_WORKFLOWS',
      message: 'has no effect: set HOLDFAST_CODEC_REQUIRED to true, or remove it',
    });
  return problems;
}

function storageErrors(set: Env): ConfigProblem[] {
  const problems: ConfigProblem[] = [];
  for (const store of ['HOLDFAST_STORE_VOLUME_CLAIM', 'HOLDFAST_STORE_BUCKET'] as const) {
    if (set[store] !== undefined && set['HOLDFAST_SUPERVISOR_IMAGE'] === undefined)
      problems.push({
        setting: store,
        message: 'needs the image that has the uploader: set HOLDFAST_SUPERVISOR_IMAGE',
      });
  }
  for (const ofBucket of BUCKET_SETTINGS) {
    if (set[ofBucket] !== undefined && set['HOLDFAST_STORE_BUCKET'] === undefined)
      problems.push({
        setting: ofBucket,
        message: 'is about a bucket, and none is named: set HOLDFAST_STORE_BUCKET, or remove it',
      });
  }
  if (
    set['HOLDFAST_JOB_CLAIM_STORAGE_CLASS'] !== undefined &&
    set['HOLDFAST_JOB_CLAIM_SIZE'] === undefined
  )
    problems.push({
      setting: 'HOLDFAST_JOB_CLAIM_STORAGE_CLASS',
      message: 'has no effect: set HOLDFAST_JOB_CLAIM_SIZE, or remove it',
    });
  return problems;
}

function valueErrors(parsed: Settings): ConfigProblem[] {
  const problems: ConfigProblem[] = [];
  if (!/^(log|off|\/.+)$/.test(parsed.HOLDFAST_POD_LOGS)) {
    problems.push({
      setting: 'HOLDFAST_POD_LOGS',
      message: 'is neither log nor off nor an absolute path: write for example /var/log/holdfast',
    });
  }
  if (parsed.HOLDFAST_SHUTDOWN_FORCE_TIME < parsed.HOLDFAST_SHUTDOWN_GRACE_TIME) {
    problems.push({
      setting: 'HOLDFAST_SHUTDOWN_FORCE_TIME',
      message: 'is shorter than HOLDFAST_SHUTDOWN_GRACE_TIME: make it at least as long',
    });
  }
  return problems;
}
