import { afterEach, beforeEach, expect, test } from '@jest/globals';
import type { CiServer } from '../../activities/ports.ts';
import type { Scope } from '../../core/domain/ciServer.ts';
import { startSimulator, type Simulator } from '../../tools/simulator/simulator.ts';
import { ciServerError, ciServerOf } from '../support/ciServers.ts';

const WEB: Scope = { kind: 'repository', name: 'acme/web' };
process.env['HOLDFAST_FILES_TOKEN'] = 'ghp_simulator';

let simulator: Simulator;
let server: CiServer;
let close: () => Promise<void>;

async function connect(more: object = {}): Promise<void> {
  ({ server, close } = ciServerOf({
    type: 'pat',
    tokenEnv: 'HOLDFAST_FILES_TOKEN',
    apiUrl: simulator.url,
    ...more,
  }));
}
beforeEach(async () => {
  simulator = await startSimulator();
  await connect();
});
afterEach(async () => {
  await close();
  await simulator.stop();
});

const files = (count: number): { filename: string }[] =>
  Array.from({ length: count }, (_, n) => ({ filename: `src/${n}.ts` }));
const changed = async (number: number): Promise<string[] | undefined> =>
  await server.changedPaths?.(WEB, number);

test('what is moved has both names', async () => {
  simulator.addPullRequest('acme/web', 7, [
    { filename: 'src/a b.ts' },
    { filename: 'b.ts', previous_filename: 'a.ts' },
  ]);
  expect(await changed(7)).toEqual(['src/a b.ts', 'b.ts', 'a.ts']);
});

test('all pages, a full last one among them; more than a thousand files are not told', async () => {
  for (const count of [0, 200, 250, 999]) {
    simulator.addPullRequest('acme/web', count, files(count));
    expect(await changed(count)).toHaveLength(count);
  }
  simulator.addPullRequest('acme/web', 1_000, files(1_000));
  expect(await changed(1_000)).toBeUndefined();
});

test("one that is not seen is the credential's doing, and says which right it needs", async () => {
  expect(await ciServerError(changed(8))).toMatchObject({
    kind: 'credentials',
    status: 404,
    message: expect.stringContaining('pull requests: read'),
  });
});

test('a credential that is not for the repository is not used', async () => {
  await close();
  await connect({ scopes: ['other'] });
  simulator.addPullRequest('acme/web', 7, files(1));
  expect(await ciServerError(changed(7))).toMatchObject({ kind: 'rejected' });
  expect(simulator.requests()).toEqual([]);
});
