/** A job that wants to register runners of its own: it looks everywhere for the registration token, which is good for its runner's whole scope. */
import { expect } from '@jest/globals';
import type { RunnerInput } from '../../core/contract/index.ts';
import type { ClusterRun } from '../support/clusterRun.ts';
import { ClusterWorld } from '../support/clusterWorld.ts';
import { cleanEnd } from '../support/demoRunners.ts';
import { describeWithLab } from '../support/lab.ts';
import { together, type Scenario } from '../support/together.ts';

const NOBODY = 65_534;

/**
 * Prints each process' environment and command line, and each file in whatever mount, that holds one of the texts. They are given backwards: the
 * search must not find itself.
 */
const SEARCH = `
  const fs = require('fs');
  const [uid, ...texts] = process.argv.slice(2);
  const needles = texts.map((text) => Buffer.from([...text].reverse().join('')));
  if (uid !== '') process.setuid(Number(uid));
  const look = (path) => {
    let content;
    try { content = fs.readFileSync(path); } catch { return; }
    needles.forEach((needle, index) => content.includes(needle) && console.log('found ' + index + ' ' + path));
  };
  const lookAtFile = (path) => {
    let real = '';
    try { real = fs.statSync(path).isFile() ? fs.realpathSync(path) : ''; } catch { return; }
    if (real !== '' && !/^\\/(proc|sys)\\//.test(real)) look(path);
  };
  const walk = (folder) => {
    let entries = [];
    try { entries = fs.readdirSync(folder, { withFileTypes: true }); } catch { return; }
    for (const entry of entries) {
      const path = (folder === '/' ? '' : folder) + '/' + entry.name;
      if (!entry.isDirectory()) lookAtFile(path);
      else if (path !== '/proc' && path !== '/sys') walk(path);
    }
  };
  for (const pid of fs.readdirSync('/proc').filter((name) => /^[0-9]+$/.test(name))) for (const file of ['environ', 'cmdline']) look('/proc/' + pid + '/' + file);
  walk('/');
  console.log('searched');
`;

/** @returns where the job found the token of its runner; that it can find things at all is shown by the runner's name, which it has put into a file */
async function searched(world: ClusterWorld, run: ClusterRun, uid: number | ''): Promise<string[]> {
  const { runnerName, pod } = await run.listens();
  const { core, name: namespace } = world.namespace;
  const { data = {} } = await core.readNamespacedSecret({ name: pod, namespace });
  const token = Buffer.from(data['RUNNER_TOKEN'] ?? '', 'base64').toString();
  expect(token).toMatch(/^A[0-9A-F]{28}$/);
  const backwards = [token, runnerName].map((text) => Array.from(text).toReversed().join(''));
  const job = run.queueJob(
    `cat >search.cjs <<'END'\n${SEARCH}\nEND\nchmod 755 . && echo "$RUNNER_NAME" >control && node "$PWD/search.cjs" '${uid}' ${backwards.join(' ')}`,
  );
  await run.waitForLine(job, 'searched');
  const found = run.jobOutput(job).filter((line) => line.startsWith('found '));
  expect(found).toContainEqual(expect.stringMatching(/^found 1 .*\/control$/));
  return found.filter((line) => line.startsWith('found 0 '));
}

function attack(input: Partial<RunnerInput>, uid: number | '' = ''): Scenario<ClusterWorld> {
  return async (world) => {
    const run = await world.start('tempted', { ephemeral: false, ...input });
    expect(await searched(world, run, uid)).toEqual([]);
    await run.drain();
    expect(await run.ends()).toMatchObject({ outcome: 'succeeded', attempt: 1 });
  };
}

/** Passes on the registration, and keeps the token. */
const EVIL_CONFIG = `#!/bin/sh
env >/evil/taken
cd /home/runner && ./config.sh "$@" && cp .runner* .credentials* /evil/
`;
const EVIL_RUN =
  '#!/bin/sh\ncp .runner* .credentials* /home/runner/ && cd /home/runner && exec ./run.sh\n';
const EVIL = { name: 'evil', mountPath: '/evil' };

/** A program of the starter's in the place of `config.sh`, on a volume that starts empty with the pod. */
const ownProgram: Partial<RunnerInput> = {
  env: { RUNNER_HOME: '/evil' },
  pod: {
    spec: {
      volumes: [{ name: 'evil', emptyDir: {} }],
      initContainers: [
        {
          name: 'prepare',
          image: 'holdfast.test/busybox:1',
          command: [
            'sh',
            '-c',
            'cd /evil && printf %s "$1" >config.sh && printf %s "$2" >run.sh && chmod 777 . && chmod 755 *.sh',
            'sh',
            EVIL_CONFIG,
            EVIL_RUN,
          ],
          volumeMounts: [EVIL],
        },
      ],
      containers: [{ name: 'runner', volumeMounts: [EVIL] }],
    },
  },
};

/** What would take the token before or while the runner registers. */
const SPIES: Readonly<Record<string, Partial<RunnerInput>>> = {
  'a command for the container that registers': {
    pod: { spec: { initContainers: [{ name: 'holdfast-register', command: ['env'] }] } },
  },
  'processes that are shared': { pod: { spec: { shareProcessNamespace: true } } },
  "a mount of Holdfast's volumes": {
    pod: {
      spec: {
        containers: [
          { name: 'side', volumeMounts: [{ name: 'holdfast-register-0', mountPath: '/a' }] },
        ],
      },
    },
  },
};

function rejected(input: Partial<RunnerInput>): Scenario<ClusterWorld> {
  return async (world) => {
    const run = await world.start('spy', { ephemeral: false, ...input });
    await expect(run.handle.result()).rejects.toMatchObject({ cause: { type: 'InvalidInput' } });
    expect(await run.pods()).toEqual([]);
  };
}

/** With all that a container runtime gives to root. */
const asRoot: Partial<RunnerInput> = {
  pod: {
    spec: {
      containers: [
        {
          name: 'runner',
          securityContext: { allowPrivilegeEscalation: true, capabilities: { drop: [] } },
        },
      ],
    },
  },
};
const asRunner: Partial<RunnerInput> = { pod: { spec: { securityContext: { runAsUser: 1001 } } } };

await describeWithLab(
  'a job of a static runner that searches for the registration token',
  { temporal: true, nodes: 'kubelet' },
  (lab) => {
    together(
      async () => await ClusterWorld.open(lab),
      {
        'as root': attack(asRoot),
        'as another user': attack(asRoot, NOBODY),
        "as the runner's own user, who is not root": attack(asRunner),
        'without the supervisor': attack({ supervisor: 'none' }),
        'with a program and a volume of the starter': attack(ownProgram),
        ...Object.fromEntries(
          Object.entries(SPIES).map(([what, input]) => [
            `${what}: is rejected, and no pod is made`,
            rejected(input),
          ]),
        ),
      },
      { afterwards: cleanEnd },
    );
  },
);
