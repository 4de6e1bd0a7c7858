/** What steps leave in real pods, however they end: for those after them, and for people. */
import { readdirSync, readFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect } from '@jest/globals';
import type { JobResult, StepInput } from '../../core/contract/index.ts';
import type { LabState } from '../../tools/lab/lab.ts';
import { runCli } from '../support/cli.ts';
import { ClusterJob } from '../support/clusterJob.ts';
import { CLUSTER_POLICY, ClusterWorld } from '../support/clusterWorld.ts';
import { HostPathVolumes } from '../support/hostPathVolumes.ts';
import { states } from '../support/jobRun.ts';
import { describeWithLab } from '../support/lab.ts';
import { TICK } from '../support/stoppedChildren.ts';
import { together, type Scenario } from '../support/together.ts';

const temporary = mkdtempSync(join(tmpdir(), 'hf-job-storage-'));
const POLICY = join(temporary, 'policy.json');
writeFileSync(POLICY, JSON.stringify({ ...CLUSTER_POLICY, secrets: ['cloud'] }));
afterAll(() => rmSync(temporary, { recursive: true }));

const PASSWORD = 'correct horse battery';
const CLAIM = 'artifacts';

/** A cluster with a store, of which this machine sees the folder. */
class Stored {
  readonly world: ClusterWorld;
  readonly folder: string;
  readonly #volumes: HostPathVolumes;

  private constructor(world: ClusterWorld, folder: string, volumes: HostPathVolumes) {
    this.world = world;
    this.folder = folder;
    this.#volumes = volumes;
  }

  static async open(lab: LabState): Promise<Stored> {
    const world = await ClusterWorld.open(lab, {
      webhook: false,
      settings: { HOLDFAST_STORE_VOLUME_CLAIM: CLAIM, HOLDFAST_POD_POLICY_FILE: POLICY },
    });
    const volumes = new HostPathVolumes(world.namespace);
    const folder = await volumes.sharedClaim(CLAIM);
    await world.namespace.core.createNamespacedSecret({
      namespace: world.namespace.name,
      body: { metadata: { name: 'cloud' }, stringData: { password: `${PASSWORD}\n` } },
    });
    return new Stored(world, folder, volumes);
  }

  /** What is kept of a step: by path, its text. */
  files = ({ steps }: JobResult, name: string): Record<string, string> => {
    const folder = join(this.folder, steps.find((each) => each.name === name)?.artifactPath ?? '');
    const paths = readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map(({ parentPath, name: file }) => join(parentPath, file));
    return Object.fromEntries(
      paths.map((path) => [path.slice(folder.length), readFileSync(path, 'utf8')]),
    );
  };

  close = async (): Promise<void> => {
    await this.world.close();
    await this.#volumes.remove();
  };
}

const step = (name: string, commands: string, more: Partial<StepInput> = {}): StepInput => ({
  name,
  image: 'holdfast.test/busybox:1',
  commands,
  ...more,
});
/** Leaves something for the next, and for people, and says that it is up. */
const LEAVE = 'echo c-1 >"$SHARED_DIR/cluster"; echo half >"$ARTIFACT_DIR/half.txt"; echo up;';
const CLEAN = step('clean', 'echo "found $(cat "$SHARED_DIR/cluster")"');

const bash = (name: string, script: string): StepInput => ({
  name,
  image: 'holdfast.test/runner:1',
  command: ['bash', '-c', script],
});
const file = (name: string, text: string): string =>
  `printf '%s\\n' '#!/bin/sh' '${text}' >${name}; chmod +x ${name};`;
/** The shell does not pass the signal on, and sees to it when the script has ended. */
const validates = (times: string): StepInput =>
  bash(
    'validate',
    `cd /tmp; ${file('validate.sh', 'echo "validated $1"; sleep 1')}
    cleanup() { echo "cleaned up after $i" | tee "$ARTIFACT_DIR/cleanup.txt"; exit 1; }
    trap cleanup TERM
    echo up
    for i in ${times}; do ./validate.sh "$i"; done
    echo "all is valid" >"$ARTIFACT_DIR/report.txt"`,
  );
/** Work in the background, to which the trap passes the signal on; a second signal, for all of them at once, would find nobody. */
const serves = (until: string): StepInput =>
  bash(
    'serve',
    `cd /tmp; ${file('serve.sh', `trap "echo $1 stopped cleanly; exit 0" TERM; echo "$1 serves"; ${until}`)}
    trap 'kill $(jobs -p); wait; cp server-*.log "$ARTIFACT_DIR"; exit 1' TERM
    for name in one two; do ./serve.sh "$name" >server-$name.log & done
    until [ "$(cat server-*.log | grep -c serves)" = 2 ]; do sleep 0.1; done
    echo up
    wait
    cp server-*.log "$ARTIFACT_DIR"`,
  );

const scenarios: Record<string, Scenario<Stored>> = {
  'from step to step, and no further than it is wanted; JUnit reports and logs are there when the pods are gone':
    async ({ world, files }) => {
      const job = await ClusterJob.start(world, 'handed-on', {
        repository: 'Acme/Web',
        pre: [
          step(
            'rent',
            'echo c-1 >"$SHARED_DIR/cluster"; echo secret >"$SHARED_DIR/key"; chmod 600 "$SHARED_DIR/key"',
          ),
        ],
        test: [
          step(
            'unit',
            'test "$(cat "$SHARED_DIR/cluster")" = c-1; rm "$SHARED_DIR/key"; mkdir "$ARTIFACT_DIR/reports"; echo "<x/>" >"$ARTIFACT_DIR/reports/junit_unit.xml"; echo done; echo oh >&2',
          ),
        ],
        post: [step('clean', 'ls "$SHARED_DIR"')],
      });
      const result = await job.result();
      expect(states(result)).toEqual(['rent succeeded', 'unit succeeded', 'clean succeeded']);
      const unit = files(result, 'unit');
      expect(Object.keys(unit).toSorted()).toEqual([
        'artifacts/reports/junit_unit.xml',
        'build-log.txt',
        'finished.json',
        'junit/reports/junit_unit.xml',
        'started.json',
      ]);
      expect(unit['build-log.txt']).toMatch(/^(done\noh\n|oh\ndone\n)$/m);
      expect(JSON.parse(unit['finished.json'] ?? '')).toMatchObject({ exitCode: 0 });
      expect(files(result, 'clean')['build-log.txt']).toMatch(/^cluster$/m);
      expect(files(result, 'clean')['build-log.txt']).not.toMatch(/^key$/m);
      expect(result.steps[1]?.artifactPath).toMatch(
        /^artifacts\/repositories\/acme\/web\/handed-on\/[^/]+\/test-unit\/1\/$/,
      );
    },

  'by images with a non-root USER: files that only their owner may read are handed on, and belong to the step’s user':
    async ({ world, files }) => {
      const as1001 = { image: 'holdfast.test/non-root:1' };
      const job = await ClusterJob.start(world, 'non-root', {
        pre: [
          step(
            'install',
            'id -u; echo log >"$ARTIFACT_DIR/log.txt"; umask 077; echo config >"$SHARED_DIR/kubeconfig"',
            as1001,
          ),
        ],
        test: [
          step(
            'upgrade',
            'stat -c "%u %a" "$SHARED_DIR/kubeconfig"; cat "$SHARED_DIR/kubeconfig"; echo more >>"$SHARED_DIR/kubeconfig"',
            as1001,
          ),
        ],
        post: [step('uninstall', 'id -u; cat "$SHARED_DIR/kubeconfig"')],
      });
      const result = await job.result();
      expect(states(result)).toEqual([
        'install succeeded',
        'upgrade succeeded',
        'uninstall succeeded',
      ]);
      expect(files(result, 'install')['build-log.txt']).toMatch(/^1001$/m);
      expect(files(result, 'install')['artifacts/log.txt']).toBe('log\n');
      expect(files(result, 'upgrade')['build-log.txt']).toMatch(/^1001 600\nconfig$/m);
      expect(files(result, 'uninstall')['build-log.txt']).toMatch(/^0\nconfig\nmore$/m);
    },

  'of a step that ignores its stop, and is killed: post begins with what it left; its Secret is hidden':
    async ({ world, files }) => {
      const volumes = [
        {
          name: 'cloud',
          mountPath: '/cloud',
          readOnly: true,
          secret: { secretName: 'cloud', defaultMode: 0o400 },
        },
      ];
      const unit = step(
        'unit',
        `trap "" TERM; echo "as $(cat /cloud/password)"; cp /cloud/password "$ARTIFACT_DIR/password"; ${LEAVE} ${TICK}`,
        { gracePeriod: '40s', volumes },
      );
      const job = await ClusterJob.start(world, 'killed', { test: [unit], post: [CLEAN] });
      await job.up('unit');
      await job.handle.signal('cancel', 'enough');
      const result = await job.result();
      expect(states(result)).toEqual(['unit aborted cancelled', 'clean succeeded']);
      expect(files(result, 'clean')['build-log.txt']).toContain('found c-1');
      const left = files(result, 'unit');
      expect(left).toMatchObject({
        'artifacts/half.txt': 'half\n',
        'artifacts/password': `${'*'.repeat(PASSWORD.length)}\n`,
        'build-log.txt': expect.stringContaining(`as ${'*'.repeat(PASSWORD.length)}\n`),
      });
      expect(left['build-log.txt']).toContain('Process did not exit before 40s grace period');
      expect(JSON.stringify(left)).not.toContain(PASSWORD);
    },

  'as authors write steps: a trap around a loop of scripts, left alone and interrupted': async ({
    world,
    files,
  }) => {
    const jobs = await Promise.all(
      ['1 2', '$(seq 1000)'].map(
        async (times, index) =>
          await ClusterJob.start(world, `validates-${index}`, { test: [validates(times)] }),
      ),
    );
    await jobs[1]?.up('validate');
    await jobs[1]?.handle.signal('cancel', 'enough');
    const [alone, interrupted] = await Promise.all(jobs.map(async (job) => await job.result()));
    expect(alone).toMatchObject({ outcome: 'succeeded' });
    expect(files(alone!, 'validate')).toMatchObject({
      'artifacts/report.txt': 'all is valid\n',
      'build-log.txt': expect.stringContaining('validated 2\n'),
    });
    expect(interrupted).toMatchObject({
      outcome: 'aborted',
      cause: 'cancelled',
      steps: [{ exitCode: 1 }],
    });
    expect(files(interrupted!, 'validate')).toMatchObject({
      'artifacts/cleanup.txt': expect.stringMatching(/^cleaned up after \d+\n$/),
    });
    expect(files(interrupted!, 'validate')).not.toHaveProperty(['artifacts/report.txt']);
  },

  'as authors write steps: work in the background that its trap stops, left alone and interrupted':
    async ({ world, files }) => {
      const jobs = await Promise.all(
        ['sleep 2', TICK].map(
          async (until, index) =>
            await ClusterJob.start(world, `serves-${index}`, { test: [serves(until)] }),
        ),
      );
      await jobs[1]?.up('serve');
      await jobs[1]?.handle.signal('cancel', 'enough');
      const [alone, interrupted] = await Promise.all(jobs.map(async (job) => await job.result()));
      expect(alone).toMatchObject({ outcome: 'succeeded' });
      expect(interrupted).toMatchObject({
        outcome: 'aborted',
        cause: 'cancelled',
        steps: [{ exitCode: 1 }],
      });
      for (const name of ['one', 'two']) {
        expect(files(alone!, 'serve')[`artifacts/server-${name}.log`]).toBe(`${name} serves\n`);
        expect(files(interrupted!, 'serve')[`artifacts/server-${name}.log`]).toBe(
          `${name} serves\n${name} stopped cleanly\n`,
        );
      }
    },

  'of a step that takes nearly all its grace to make its artifacts: they are stored in the rest':
    async ({ world, files }) => {
      // By the clock: twelve times a second are more on a slow machine.
      const script =
        'trap \'end=$(($(date +%s) + 40)); until [ $(date +%s) -ge $end ]; do sleep 0.5; echo more >>"$ARTIFACT_DIR/dump.txt"; done; echo complete >>"$ARTIFACT_DIR/dump.txt"; exit 1\' TERM; echo up;';
      const job = await ClusterJob.start(world, 'slow-dump', {
        test: [step('unit', `${script} ${TICK}`, { gracePeriod: '60s' })],
      });
      await job.up('unit');
      await job.handle.signal('cancel', 'enough');
      const result = await job.result();
      expect(result).toMatchObject({ outcome: 'aborted', steps: [{ exitCode: 1 }] });
      expect(files(result, 'unit')['artifacts/dump.txt']).toMatch(/more\ncomplete\n$/);
      expect(files(result, 'unit')['build-log.txt']).toContain(
        'Process gracefully exited before 1m0s grace period',
      );
    },

  'of a step that takes more than that: it is cut, and what was there by then is stored': async ({
    world,
    files,
  }) => {
    const script =
      'trap \'i=0; while :; do sleep 0.5; i=$((i+1)); echo "half second $i" >>"$ARTIFACT_DIR/dump.txt"; done\' TERM; echo up;';
    const job = await ClusterJob.start(world, 'slower-dump', {
      test: [step('unit', `${script} ${TICK}`, { gracePeriod: '40s' })],
    });
    await job.up('unit');
    await job.handle.signal('cancel', 'enough');
    const result = await job.result();
    expect(result).toMatchObject({ outcome: 'aborted' });
    expect(files(result, 'unit')['artifacts/dump.txt']).toMatch(/^half second 1\n/);
    expect(files(result, 'unit')['build-log.txt']).toContain(
      'Process did not exit before 40s grace period',
    );
  },

  'of a step that is killed for memory, and all of its container with it: what it had written':
    async ({ world, files }) => {
      const job = await ClusterJob.start(world, 'memory', {
        test: [
          step('unit', `${LEAVE} tail /dev/zero`, { resources: { limits: { memory: '128Mi' } } }),
        ],
        post: [CLEAN],
      });
      const result = await job.result();
      expect(states(result)).toEqual(['unit failed oom_killed', 'clean succeeded']);
      expect(files(result, 'unit')).toMatchObject({
        'artifacts/half.txt': 'half\n',
        'build-log.txt': expect.stringContaining('up\n'),
      });
      expect(files(result, 'clean')['build-log.txt']).toContain('found c-1');
    },

  'of a step that kills its own supervisor: the same': async ({ world, files }) => {
    const job = await ClusterJob.start(world, 'unsupervised', {
      test: [step('unit', `${LEAVE} kill -9 "$PPID"; ${TICK}`)],
      post: [CLEAN],
    });
    const result = await job.result();
    expect(result.outcome).not.toBe('succeeded');
    expect(files(result, 'unit')['artifacts/half.txt']).toBe('half\n');
    expect(files(result, 'clean')['build-log.txt']).toContain('found c-1');
  },

  'too much for the next step: an error that names the biggest, and the next begins with what was before':
    async ({ world, files }) => {
      const job = await ClusterJob.start(world, 'too-much', {
        pre: [step('rent', LEAVE)],
        test: [step('unit', 'head -c 1048577 /dev/zero >"$SHARED_DIR/dump"')],
        post: [CLEAN],
      });
      const result = await job.result();
      expect(states(result)).toEqual(['rent succeeded', 'unit failed', 'clean succeeded']);
      expect(result.steps[1]?.message).toContain('"dump"');
      expect(files(result, 'clean')['build-log.txt']).toContain('found c-1');
    },

  'a command that cannot be started holds nobody up': async ({ world }) => {
    const job = await ClusterJob.start(world, 'no-command', {
      test: [{ name: 'unit', image: 'holdfast.test/busybox:1', command: ['/no/such/program'] }],
    });
    expect(await job.result()).toMatchObject({ outcome: 'failed', steps: [{ exitCode: 127 }] });
  },

  'its process log, when its pod is gone': async ({ world, folder }) => {
    const job = await ClusterJob.start(world, 'told', {
      test: [step('unit', 'echo "all is well"')],
    });
    await job.result();
    const { status, stdout } = await runCli(
      ['job', 'logs', job.id, '--step', 'unit', '--store', folder],
      { TEMPORAL_ADDRESS: world.settings['TEMPORAL_ADDRESS'] ?? '' },
    );
    expect(stdout).toContain('all is well\n');
    expect(status).toBe(0);
  },
};

await describeWithLab('artifacts of job steps', { temporal: true, nodes: 'kubelet' }, (lab) => {
  together(async () => await Stored.open(lab), scenarios, {
    afterwards: {
      'nothing is left in the cluster': async ({ world }) => {
        await world.namespace.core.deleteNamespacedSecret({
          namespace: world.namespace.name,
          name: 'cloud',
        });
        await world.expectNothingLeft();
      },
    },
  });
});
