/**
 * Implements `holdfast job logs --step`, which prints the stored output of a step. It does not need
 * the step's pod.
 */
import type { ArtifactStore } from '../../activities/artifacts/artifactStore.ts';
import { loadOptional } from '../../activities/shared/optionalPackages.ts';
import { createDirectoryStore } from '../../activities/artifacts/directoryStore.ts';
import { ARTIFACT_NAMES } from '../../core/domain/artifactLayout.ts';
import type { Session } from '../shared/session.ts';
import { CliError } from '../shared/exit.ts';
import type { Output } from '../shared/output.ts';
import { NO_WORKER, readJob } from './jobClient.ts';
import { describeResource } from '../shared/resource.ts';
import { JOB } from '../shared/resourceKind.ts';
import { errorMessage } from '../../core/domain/errorMessage.ts';

/**
 * Prints the output of a step.
 * @param store - directory in which the worker's store is mounted on this machine, or
 * `s3://bucket/folder`
 * @throws CliError `not_found`, `unreachable`
 */
export async function stepLog(
  session: Session,
  output: Output,
  id: string,
  name: string,
  store: string,
): Promise<void> {
  const description = await describeResource(session, JOB, id);
  const { job } = await readJob(session, description);
  if (job === undefined)
    throw new CliError('unreachable', `${description.workflowId}: ${NO_WORKER}`);
  const step = job.steps.find((each) => each.name === name);
  if (step === undefined)
    throw new CliError(
      'not_found',
      `${description.workflowId} has no step "${name}"; its steps are ${job.steps.map((each) => each.name).join(', ')}`,
    );
  const { artifactPath, pod, state } = step;
  const log =
    artifactPath === undefined
      ? undefined
      : await read(store, `${artifactPath}${ARTIFACT_NAMES.log}`);
  if (artifactPath === undefined || log === undefined) {
    const live = pod === undefined ? '' : `; while its pod exists: kubectl logs ${pod}`;
    throw new CliError(
      'not_found',
      `the output of ${name} is not stored (${state}${artifactPath === undefined ? '' : `, ${artifactPath} in ${store}`})${live}`,
    );
  }
  const text = Buffer.from(log).toString();
  output.result(
    { id: description.workflowId, step: name, artifactPath, log: text },
    text.replace(/\n$/, '').split('\n'),
  );
}

async function read(store: string, key: string): Promise<Uint8Array | undefined> {
  const kept = await storeAt(store);
  try {
    return await kept.get(key);
  } catch (error) {
    throw new CliError('unreachable', `--store ${store}: ${errorMessage(error)}`);
  }
}

/** Opens the store. A bucket is accessed like in the AWS CLI, with its variables and profiles. */
async function storeAt(store: string): Promise<ArtifactStore> {
  const [, bucket, folder = ''] = /^s3:\/\/([^/]+)(?:\/(.*))?$/.exec(store) ?? [];
  if (bucket === undefined) {
    if (store.startsWith('s3:'))
      throw new CliError(
        'usage',
        `--store: "${store}" must name a bucket, for example s3://artifacts/ci`,
      );
    return createDirectoryStore(store);
  }
  const { createBucketStore } = await loadOptional(
    '--store',
    async () => await import('../../activities/artifacts/bucketStore.ts'),
  );
  const {
    AWS_REGION: region = 'us-east-1',
    AWS_ENDPOINT_URL,
    AWS_ENDPOINT_URL_S3 = AWS_ENDPOINT_URL,
  } = process.env;
  return createBucketStore({
    bucket,
    folder,
    region,
    pathStyle: AWS_ENDPOINT_URL_S3 !== undefined,
  });
}
