/** What steps leave in real pods, in a bucket of a real server that speaks S3. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect } from '@jest/globals';
import { jobStatusQuery, type JobResult, type StepInput } from '../../core/contract/index.ts';
import type { LabState } from '../../tools/lab/lab.ts';
import { createBucket, type TestBucket } from '../support/buckets.ts';
import { CliProcess } from '../support/cli.ts';
import { ClusterJob } from '../support/clusterJob.ts';
import { CLUSTER_POLICY, ClusterWorld } from '../support/clusterWorld.ts';
import { states } from '../support/jobRun.ts';
import { describeWithLab } from '../support/lab.ts';
import { findInClear } from '../support/secretSearch.ts';
import { TICK } from '../support/stoppedChildren.ts';
import { TcpGate } from '../support/tcpGate.ts';
import { together, type Scenario } from '../support/together.ts';
import { until } from '../support/until.ts';

const temporary = mkdtempSync(join(tmpdir(), 'hf-job-bucket-'));
const POLICY = join(temporary, 'policy.json');
writeFileSync(POLICY, JSON.stringify({ ...CLUSTER_POLICY, secrets: ['cloud'] }));
afterAll(() => rmSync(temporary, { recursive: true }));

const PASSWORD = 'correct horse battery';

/** A cluster whose store is a bucket, behind a gate that can be shut. */
class Stored {
  readonly world: ClusterWorld;
  readonly bucket: TestBucket;
  readonly gate: TcpGate;
  /** From this machine, past the gate. */
  readonly endpoint: string;

  private constructor(parts: Pick<Stored, 'world' | 'bucket' | 'gate' | 'endpoint'>) {
    this.world = parts.world;
    this.bucket = parts.bucket;
    this.gate = parts.gate;
    this.endpoint = parts.endpoint;
  }

  static async open({ s3, hostAddress = '', ...lab }: LabState): Promise<Stored> {
    const bucket = await createBucket(s3!);
    const gate = await TcpGate.to(s3!.endpoint, hostAddress);
    await gate.open();
    const settings = {
      HOLDFAST_STORE_BUCKET: bucket.name,
      HOLDFAST_STORE_PREFIX: 'ci',
      HOLDFAST_STORE_ENDPOINT: gate.url,
      HOLDFAST_STORE_SECRET: 'bucket-key',
      HOLDFAST_POD_POLICY_FILE: POLICY,
    };
    const world = await ClusterWorld.open({ hostAddress, ...lab }, { webhook: false, settings });
    for (const [name, stringData] of Object.entries({
      'bucket-key': { ...bucket.env },
      cloud: { password: PASSWORD },
    })) {
      await world.namespace.core.createNamespacedSecret({
        namespace: world.namespace.name,
        body: { metadata: { name }, stringData },
      });
    }
    return new Stored({ world, bucket, gate, endpoint: s3!.endpoint });
  }

  /** What is kept of a step: by path, its text. */
  files = ({ steps }: JobResult, name: string): Record<string, string> =>
    this.bucket.texts(`ci/${steps.find((each) => each.name === name)?.artifactPath ?? ''}`);

  close = async (): Promise<void> => {
    await this.world.close();
    await this.gate.shut();
  };
}

const step = (name: string, commands: string, more: Partial<StepInput> = {}): StepInput => ({
  name,
  image: 'holdfast.test/busybox:1',
  commands,
  ...more,
});
const CLEAN = step('clean', 'echo "found $(cat "$SHARED_DIR/cluster")"');

const scenarios: Record<string, Scenario<Stored>> = {
  "from step to step, and for people when the pods are gone; Secrets are hidden, and the key of the bucket is not the step's to see":
    async ({ world, bucket, endpoint, files }) => {
      const look =
        'env; for each in /proc/[0-9]*/environ; do tr "\\0" "\\n" <"$each" || true; done; ls -d /store || true;';
      const job = await ClusterJob.start(world, 'handed-on', {
        repository: 'Acme/Web',
        pre: [step('rent', 'echo c-1 >"$SHARED_DIR/cluster"')],
        test: [
          step(
            'unit',
            `${look} test "$(cat "$SHARED_DIR/cluster")" = c-1; cp /cloud/password "$ARTIFACT_DIR"; echo "<x/>" >"$ARTIFACT_DIR/junit_unit.xml"; echo "as $(cat /cloud/password)"`,
            {
              volumes: [
                {
                  name: 'cloud',
                  mountPath: '/cloud',
                  readOnly: true,
                  secret: { secretName: 'cloud' },
                },
              ],
            },
          ),
        ],
        post: [CLEAN],
      });
      const result = await job.result();
      expect(states(result)).toEqual(['rent succeeded', 'unit succeeded', 'clean succeeded']);
      const unit = files(result, 'unit');
      const hidden = '*'.repeat(PASSWORD.length);
      expect(unit).toMatchObject({
        'artifacts/password': hidden,
        'junit/junit_unit.xml': '<x/>\n',
        'build-log.txt': expect.stringContaining(`as ${hidden}\n`),
        'started.json': expect.anything(),
      });
      expect(JSON.parse(unit['finished.json'] ?? '')).toMatchObject({ exitCode: 0 });
      expect(files(result, 'clean')['build-log.txt']).toContain('found c-1');
      expect(unit['build-log.txt']).toContain('BUILD_ID=');
      expect(unit['build-log.txt']).not.toMatch(/AWS_|HOLDFAST_UPLOAD|^\/store$/m);

      const command = new CliProcess(
        ['job', 'logs', job.id, '--step', 'clean', '--store', `s3://${bucket.name}/ci`],
        {
          TEMPORAL_ADDRESS: world.settings['TEMPORAL_ADDRESS'] ?? '',
          AWS_ENDPOINT_URL: endpoint,
          ...bucket.env,
        },
      );
      expect(await command.exited).toEqual({ code: 0, signal: null });
      expect(command.stdout).toContain('found c-1\n');
    },

  'of a step that ignores its stop, and is killed: post begins with what it left': async ({
    world,
    files,
  }) => {
    const job = await ClusterJob.start(world, 'killed', {
      test: [
        step(
          'unit',
          `trap "" TERM; echo c-2 >"$SHARED_DIR/cluster"; echo half >"$ARTIFACT_DIR/half.txt"; echo up; ${TICK}`,
          { gracePeriod: '40s' },
        ),
      ],
      post: [CLEAN],
    });
    await job.up('unit');
    await job.handle.signal('cancel', 'enough');
    const result = await job.result();
    expect(states(result)).toEqual(['unit aborted cancelled', 'clean succeeded']);
    expect(files(result, 'unit')).toMatchObject({
      'artifacts/half.txt': 'half\n',
      'build-log.txt': expect.stringContaining('Process did not exit before 40s grace period'),
    });
    expect(files(result, 'clean')['build-log.txt']).toContain('found c-2');
  },
};

await describeWithLab(
  'artifacts of job steps in a bucket',
  { temporal: true, nodes: 'kubelet', s3: true },
  (lab) => {
    together(async () => await Stored.open(lab), scenarios, {
      afterwards: {
        'the key of the bucket is to be read nowhere': async ({ world, bucket }) => {
          expect(await findInClear(world, [bucket.env.AWS_SECRET_ACCESS_KEY, PASSWORD])).toEqual(
            [],
          );
        },
        'a store that does not give what was left for a step is asked by three more pods; then the step is errored':
          async ({ world, gate }) => {
            // It has no container before its volume is there.
            const late = [{ name: 'late', mountPath: '/late', configMap: { name: 'late' } }];
            const job = await ClusterJob.start(world, 'away', {
              pre: [step('rent', 'true')],
              test: [step('unit', 'true', { volumes: late })],
            });
            await until(
              'rent to be stored',
              async () => (await job.handle.query(jobStatusQuery)).steps[0]?.state === 'ended',
              undefined,
              180_000,
            );
            await gate.shut();
            await world.namespace.core.createNamespacedConfigMap({
              namespace: world.namespace.name,
              body: { metadata: { name: 'late' } },
            });
            const result = await job.result();
            expect(states(result)).toEqual(['rent succeeded', 'unit errored agent_lost']);
            expect(result).toMatchObject({ outcome: 'errored' });
            expect(result.steps[1]?.message).toContain(
              '4 runners in a row were lost before their container started',
            );
            expect(
              world.recorder.podVersions.some(
                (version) =>
                  version.includes('Could not get ci/shared/jobs/away/') &&
                  version.includes('ECONNREFUSED'),
              ),
            ).toBe(true);
            expect(job.pods().filter((name) => name === 'test-1')).toHaveLength(4);
          },
        'nothing is left in the cluster': async ({ world }) => {
          for (const name of ['bucket-key', 'cloud'])
            await world.namespace.core.deleteNamespacedSecret({
              namespace: world.namespace.name,
              name,
            });
          await world.expectNothingLeft();
        },
      },
    });
  },
);
