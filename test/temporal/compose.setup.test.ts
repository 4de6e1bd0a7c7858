import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, test } from '@jest/globals';
import { Connection } from '@temporalio/client';
import { resolveBinary } from '../../tools/lab/resolve.ts';
import { checkTemporal } from '../../worker/checks/temporalCheck.ts';
import { describeWithLab } from '../support/lab.ts';
import { until } from '../support/until.ts';

const SCRIPT = fileURLToPath(new URL('../../deploy/compose/setup.sh', import.meta.url));

await describeWithLab('the set-up job of docker-compose.yml', { temporal: true }, (lab) => {
  const address = lab.temporal?.address ?? '';

  test('creates what the worker needs, and is idempotent', async () => {
    const namespace = `test-${randomUUID().slice(0, 8)}`;
    const env = {
      ...process.env,
      PATH: `${dirname(await resolveBinary('temporal'))}:${process.env['PATH']}`,
      TEMPORAL_ADDRESS: address,
      TEMPORAL_NAMESPACE: namespace,
    };
    const run = async (): Promise<void> =>
      void (await promisify(execFile)('sh', [SCRIPT], { env }));
    // As Compose does it (`restart: on-failure`): a server takes seconds to know a new namespace everywhere.
    await until('the job to succeed', async () => {
      await run();
      return true;
    });
    await run();
    const connection = await Connection.connect({ address });
    const findings = await checkTemporal(connection, {
      address,
      namespace,
      connectionOptions: { address },
    });
    expect(findings.filter(({ level }) => level !== 'ok')).toEqual([]);
    await connection.close();
  });
});
