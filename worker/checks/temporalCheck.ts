/** Checks whether the Temporal namespace has what Holdfast needs. */
import { isGrpcServiceError, type ConnectionLike } from '@temporalio/client';
import { GRPC_NOT_FOUND } from '../../activities/shared/grpcStatus.ts';
import { SEARCH_ATTRIBUTES } from '../../core/contract/index.ts';
import { oneLine } from '../settings/config.ts';
import type { Finding } from './finding.ts';
import type { TemporalConfig } from '../settings/temporalConfig.ts';

/** temporal.api.enums.v1.IndexedValueType */
const KEYWORD = 2;
const TYPE_NAMES = [
  'Unspecified',
  'Text',
  'Keyword',
  'Int',
  'Double',
  'Bool',
  'Datetime',
  'KeywordList',
];

const NAMES = Object.values(SEARCH_ATTRIBUTES).map((attribute) => attribute.name);

/**
 * Checks the namespace, its search attributes and the version of the server.
 * @throws the error of the connection if Temporal does not answer
 */
export async function checkTemporal(
  connection: ConnectionLike,
  temporal: TemporalConfig,
): Promise<Finding[]> {
  const where = cliFlags(temporal);
  try {
    await connection.workflowService.describeNamespace({ namespace: temporal.namespace });
  } catch (error) {
    if (!isGrpcServiceError(error) || (error.code as number) !== GRPC_NOT_FOUND) throw error;
    const address = where.replace(/ --namespace \S+/, '');
    return [
      {
        level: 'error',
        message: `TEMPORAL_NAMESPACE: the Temporal server at ${temporal.address} has no namespace "${temporal.namespace}"`,
        fix: `temporal operator namespace create --namespace ${temporal.namespace} --retention 72h${address}`,
      },
    ];
  }
  const { serverVersion } = await connection.workflowService.getSystemInfo({});
  return [
    { level: 'ok', message: `Temporal namespace "${temporal.namespace}" at ${temporal.address}` },
    ...(await checkSearchAttributes(connection, temporal)),
    evaluateFairness(serverVersion),
  ];
}

/** First server version that dispatches activities fairly between fairness keys. */
const FAIR_SINCE = { major: 1, minor: 29 } as const;

/**
 * Checks whether calls to a CI server alternate between organizations and repositories. No API of
 * the server exposes its dynamic config.
 */
export function evaluateFairness(serverVersion: string): Finding {
  const [, major, minor] = /^(\d+)\.(\d+)/.exec(serverVersion)?.map(Number) ?? [];
  if (major === undefined || minor === undefined) {
    return {
      level: 'ok',
      message:
        'Temporal server of an unknown version: make sure that it hands out tasks fairly (dynamic config matching.enableFairness: true; in Temporal Cloud a setting of the namespace)',
    };
  }
  if (major < FAIR_SINCE.major || (major === FAIR_SINCE.major && minor < FAIR_SINCE.minor)) {
    return {
      level: 'warning',
      message: `Temporal server ${serverVersion} cannot take turns: an organization or repository with thousands of runners makes all others of its credential wait`,
      fix: `upgrade it to ${FAIR_SINCE.major}.${FAIR_SINCE.minor} or newer, and set the dynamic config matching.enableFairness: true`,
    };
  }
  return {
    level: 'ok',
    message: `Temporal server ${serverVersion} can take turns between repositories; it does if its dynamic config has matching.enableFairness: true, which it cannot be asked`,
  };
}

async function checkSearchAttributes(
  connection: ConnectionLike,
  temporal: TemporalConfig,
): Promise<Finding[]> {
  let registered: Record<string, number>;
  try {
    const answer = await connection.operatorService.listSearchAttributes({
      namespace: temporal.namespace,
    });
    registered = { ...answer.customAttributes };
  } catch (error) {
    // Temporal Cloud has no operator service, and a server may deny it.
    return [
      {
        level: 'warning',
        message: `the search attributes of namespace "${temporal.namespace}" cannot be listed (${oneLine(error).slice(0, 160)})`,
        fix: `make sure that these exist, of type Keyword: ${NAMES.join(', ')}`,
      },
    ];
  }
  return evaluateSearchAttributes(registered, cliFlags(temporal));
}

/**
 * Returns the findings about the search attributes of the namespace.
 * @param registered - type number (temporal.api.enums.v1.IndexedValueType) by name
 * @param where - flags for the Temporal CLI with a leading space; may be empty
 */
export function evaluateSearchAttributes(
  registered: Readonly<Record<string, number>>,
  where: string,
): Finding[] {
  const missing = NAMES.filter((name) => registered[name] === undefined);
  const wrong = NAMES.filter(
    (name) => registered[name] !== undefined && registered[name] !== KEYWORD,
  );
  const findings: Finding[] = wrong.map((name) => ({
    level: 'error',
    message: `Temporal search attribute ${name} has the type ${TYPE_NAMES[registered[name] ?? 0] ?? String(registered[name])}, not Keyword`,
    fix: `use another namespace (TEMPORAL_NAMESPACE), or: temporal operator search-attribute remove --name ${name}${where}`,
  }));
  if (missing.length > 0) {
    findings.push({
      level: 'error',
      message: `Temporal search attribute${missing.length > 1 ? 's' : ''} missing: ${missing.join(', ')}`,
      fix: `temporal operator search-attribute create ${missing.map((name) => `--name ${name} --type Keyword`).join(' ')}${where}`,
    });
  }
  return findings.length > 0
    ? findings
    : [{ level: 'ok', message: `Temporal search attributes ${NAMES.join(', ')}` }];
}

/**
 * Returns the options that make the Temporal CLI use the worker's server and namespace. Empty if
 * its defaults do.
 */
export function cliFlags({ address, namespace }: TemporalConfig): string {
  const isDefault = address === 'localhost:7233' || address === '127.0.0.1:7233';
  return `${isDefault ? '' : ` --address ${address}`}${namespace === 'default' ? '' : ` --namespace ${namespace}`}`;
}
