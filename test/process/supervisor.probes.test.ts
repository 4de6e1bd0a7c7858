/** Probes whose answers are held back until they are news: the server alone, in this process. */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { expect, test } from '@jest/globals';
import { serveProbes } from '../../supervisor/ciRunner/probes.ts';
import { until } from '../support/until.ts';

/** As long as the server holds an answer at most. */
const LONG = 'wait=1h';
/** Maximum delay of an answer in tests that end the delay themselves (ms). */
const HELD_MS = 30_000;

async function probes(maxWaitMs?: number) {
  const state = { startup: false, ready: false };
  let looks = 0;
  const look = (what: keyof typeof state): boolean => {
    looks++;
    return state[what];
  };
  const server = await serveProbes(
    { startup: () => look('startup'), ready: () => look('ready') },
    { port: 0, host: '127.0.0.1' },
    maxWaitMs,
  );
  const ask = async (pathAndQuery: string): Promise<number> =>
    (await fetch(`http://127.0.0.1:${server.port}${pathAndQuery}`)).status;
  /** Asks, and returns when the question has been read and not been answered. */
  const askAndWait = async (pathAndQuery: string): Promise<{ answer: Promise<number> }> => {
    const before = looks;
    let answered = false;
    const answer = ask(pathAndQuery).finally(() => (answered = true));
    await until('the question to be read', () => looks > before);
    expect(answered).toBe(false);
    return { answer };
  };
  const set = (to: Partial<typeof state>): void => {
    Object.assign(state, to);
    server.changed();
  };
  return { port: server.port, ask, askAndWait, set };
}

test('a long poll returns when the result changes', async () => {
  const { ask, askAndWait, set } = await probes(HELD_MS);
  const online = await askAndWait(`/startup?${LONG}`);
  set({ startup: true, ready: true });
  expect(await online.answer).toBe(200);
  expect(await ask(`/ready?${LONG}`)).toBe(200);
  const busy = await askAndWait(`/ready?${LONG}`);
  set({ ready: false });
  expect(await busy.answer).toBe(503);
  const idle = await askAndWait(`/ready?${LONG}`);
  set({});
  set({ ready: true });
  expect(await idle.answer).toBe(200);
});

test('all waiters get the change', async () => {
  const { ask, askAndWait, set } = await probes(HELD_MS);
  expect(await ask(`/ready?${LONG}`)).toBe(503);
  const order: string[] = [];
  const [other, ...changed] = [
    await askAndWait(`/ready?${LONG}`),
    await askAndWait(`/startup?${LONG}`),
    await askAndWait(`/startup?${LONG}`),
  ];
  const unchanged = other.answer.then((status) => order.push(`ready ${status}`));
  const answered = changed.map(
    async ({ answer }) => await answer.then((status) => order.push(`startup ${status}`)),
  );
  set({ startup: true });
  await Promise.all(answered);
  expect(order).toEqual(['startup 200', 'startup 200']);
  set({ ready: true });
  await unchanged;
  expect(order.at(-1)).toBe('ready 200');
});

test('or after the requested time, or after 1.5 s', async () => {
  const { ask } = await probes();
  for (const { wait, leastMs } of [
    { wait: '300ms', leastMs: 290 },
    { wait: '1h', leastMs: 1_490 },
  ]) {
    const startMs = performance.now();
    expect(await ask(`/startup?wait=${wait}`)).toBe(503);
    expect(performance.now() - startMs).toBeGreaterThan(leastMs);
  }
});

test('a request without a wait, or with an invalid one, returns immediately', async () => {
  const { ask, askAndWait, set } = await probes(HELD_MS);
  set({ ready: true });
  expect(await ask(`/ready?${LONG}`)).toBe(200);
  const order: string[] = [];
  const { answer } = await askAndWait(`/ready?${LONG}`);
  const held = answer.then((status) => order.push(`held ${status}`));
  const paths = [
    '/ready',
    '/ready?wait=0',
    '/ready?wait=',
    '/ready?wait=soon',
    '/ready?wait=-1s',
    '/ready?waiter=1h',
    '/live',
  ];
  await Promise.all(paths.map(async (path) => await ask(path).then(() => order.push('at once'))));
  expect(order).toEqual(paths.map(() => 'at once'));
  set({ ready: false });
  await held;
  expect(order.at(-1)).toBe('held 503');
});

test('a waiting request is answered, not dropped, when others take the connections', async () => {
  const { port, ask, askAndWait, set } = await probes(HELD_MS);
  set({ ready: true });
  expect(await ask(`/ready?${LONG}`)).toBe(200);
  const { answer } = await askAndWait(`/ready?${LONG}`);
  const others: Socket[] = [];
  for (let count = 0; count < 40; count++) {
    const socket = connect(port, '127.0.0.1').on('error', () => undefined);
    others.push(socket);
    await once(socket, 'connect');
  }
  expect(await answer).toBe(200);
  for (const socket of others) socket.destroy();
});
