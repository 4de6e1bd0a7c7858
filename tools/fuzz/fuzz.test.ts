import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { caseCount } from '../../test/support/caseCount.ts';
import { assertReadableMessage } from './readableMessage.ts';
import { fuzz, type TargetReport } from './fuzz.ts';
import { fuzzInThread } from './fuzzInThread.ts';
import { target } from './target.ts';
import { TARGETS } from './targets/index.ts';

const MAIN = fileURLToPath(new URL('./main.ts', import.meta.url));

/** Always the same cases. New seeds belong to the nightly run, where they cannot fail a change. */
const SEED = 1;
/** For each target. */
const CASES = caseCount(700, 100);

/** Runs the command in a process of its own: its unhandled rejections must not reach jest. */
function run(
  args: readonly string[],
): Promise<{ status: number | string; stdout: string; stderr: string }> {
  return new Promise((resolve) => {
    execFile(process.execPath, [MAIN, ...args], { maxBuffer: 2 ** 26 }, (error, stdout, stderr) =>
      resolve({
        status: error === null ? 0 : (error.code ?? error.signal ?? 'unknown'),
        stdout,
        stderr,
      }),
    );
  });
}

describe('what comes from outside', () => {
  test(`${CASES} broken inputs for each target`, async () => {
    const { status, stdout, stderr } = await run([
      '--cases',
      String(CASES),
      '--seed',
      String(SEED),
      '--json',
    ]);
    expect(status === 0 ? '' : stderr).toBe('');
    expect(JSON.parse(stdout)).toEqual(
      TARGETS.map(
        ({ name }) =>
          expect.objectContaining({ target: name, seed: SEED, cases: CASES }) as unknown,
      ),
    );
  }, 600_000);
});

describe('the fuzzer finds', () => {
  const numbers = fc.array(fc.nat({ max: 1_000 }), { maxLength: 20 });
  const find = async (does: (input: number[]) => void | Promise<void>): Promise<TargetReport> =>
    await fuzz(
      target('made-up', '', () => ({ inputs: numbers, run: does })),
      { cases: 500, seed: 7 },
    );

  test('nothing where there is nothing', async () => {
    expect(await find(() => undefined)).toMatchObject({ cases: 500, seed: 7 });
    expect(await find(() => undefined)).not.toHaveProperty('finding');
  });

  test('a crash, its smallest input, and that input again', async () => {
    const crash = (input: number[]): void => {
      if (input.some((each) => each >= 500)) throw new TypeError('broken');
    };
    const { finding } = await find(crash);
    expect(finding).toMatchObject({
      input: '[500]',
      error: expect.stringMatching(/TypeError: broken/) as unknown,
    });
    const again = await fuzz(
      target('made-up', '', () => ({ inputs: numbers, run: crash })),
      { cases: 500, seed: 7, path: finding?.path ?? '' },
    );
    expect(again.finding).toMatchObject({ input: '[500]' });
  });

  test('what takes a second of CPU', async () => {
    let isBurnt = false;
    const { finding } = await find((input) => {
      if (isBurnt || input.length < 5) return;
      isBurnt = true;
      const start = process.threadCpuUsage();
      for (let usedMicros = 0; usedMicros < 1.05e6;) {
        const { user, system } = process.threadCpuUsage(start);
        usedMicros = user + system;
      }
    });
    expect(finding?.error).toMatch(/took 1\d\d\d ms of CPU/);
  });

  test('a case that never ends, or ends its thread: it is named with its input, and no other is tried', async () => {
    const targets = new URL('../../test/support/brokenTargets.ts', import.meta.url);
    const found = async (name: string): Promise<TargetReport> =>
      await fuzzInThread({ name }, { targets, cases: 500, seed: 7 });
    const [endless, ending] = [await found('endless'), await found('ending')];
    expect(endless).toMatchObject({
      target: 'endless',
      seed: 7,
      finding: {
        input: expect.stringMatching(/[5-9]\d\d/) as unknown,
        error: 'did not end within 5000 ms of CPU',
      },
    });
    expect(ending.finding).toEqual({
      ...endless.finding,
      error: 'ended the thread, with status 7',
    });
    expect(endless.cases).toBe(Number(endless.finding?.path) + 1);
    await expect(found('closed')).rejects.toThrow('no port is free');
  }, 120_000);

  test.each([
    ['', /without a message/],
    ['x'.repeat(3_000), /3000 characters/],
    ['the claim "[object Object]" is not allowed', /engine's/],
    ["Cannot read properties of undefined (reading 'a')", /engine's/],
  ])('the message %#, which tells nobody what to do', (message, expected) =>
    expect(() => assertReadableMessage(message, 'a')).toThrow(expected),
  );

  test('no fault with a message for people', () =>
    expect(() => assertReadableMessage('name: is missing; give it one', 'a')).not.toThrow());
});

test('a target that is not there, and a number that is none, are told', async () => {
  expect(await run(['--target', 'nothing'])).toMatchObject({
    status: 1,
    stderr: expect.stringMatching(/Allowed choices are webhook, sets/) as unknown,
  });
  expect(await run(['--cases', 'many'])).toMatchObject({
    status: 1,
    stderr: expect.stringMatching(/whole number/) as unknown,
  });
});
