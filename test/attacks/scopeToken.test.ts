/** A job that wants to register runners of its own: it looks everywhere for the registration token, which is good for its runner's whole scope. */
import { expect } from '@jest/globals';
import type { RunnerInput } from '../../core/contract/index.ts';
import type { ClusterRun } from '../support/clusterRun.ts';
import { ClusterWorld } from '../support/clusterWorld.ts';
import { cleanEnd } from '../support/demoLives.ts';
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
  await run.jobSays(job, 'searched');
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
  "a static runner's job that looks for the registration token",
  { temporal: true, nodes: 'kubelet' },
  (lab) => {
    together(
      async () => await ClusterWorld.open(lab),
      {
        'as root': attack(asRoot),
        'as another user': attack(asRoot, NOBODY),
        "as the runner's own user, who is not root": attack(asRunner),
        'without the supervisor': attack({ supervisor: 'none' }),
      },
      { afterwards: cleanEnd },
    );
  },
);
