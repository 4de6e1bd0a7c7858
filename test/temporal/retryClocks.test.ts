import { randomUUID } from 'node:crypto';
import { expect, test } from '@jest/globals';
import { CiServerError } from '../../activities/ports/ciServerError.ts';
import { DEREGISTRATION_WORKFLOW, type DeregistrationInput } from '../../core/contract/index.ts';
import { busy } from '../support/fakeCiServer.ts';
import { describeWithLab } from '../support/lab.ts';
import { memoryWorld } from '../support/memoryWorld.ts';
import { until } from '../support/until.ts';

const near = (tenths: number): unknown => expect.closeTo(tenths, -0.5);

await describeWithLab('the retry delays of an activity', { temporal: true }, (lab) => {
  test('a busy response and a failing server have delays of their own', async () => {
    const { ci, world } = await memoryWorld(lab);
    const badGateway = new CiServerError('unavailable', '502 Bad Gateway', { status: 502 });
    const answers = [busy(), badGateway, busy(), badGateway, busy()];
    ci.script.push(...answers.map((answer) => ({ method: 'remove', answer }) as const));
    const input: DeregistrationInput = {
      organization: 'acme',
      runner: { name: 'gone', id: '7' },
      initialRetryInterval: '400ms',
    };
    const handle = await world.client.workflow.start(DEREGISTRATION_WORKFLOW, {
      workflowId: `deregistration-${randomUUID()}`,
      taskQueue: world.taskQueue,
      args: [input],
    });

    const delays: number[] = [];
    for (let refused = 0; refused <= answers.length; refused++) {
      // Held, so that what was said of the try before can be read however slow this machine is.
      const held = Promise.withResolvers<void>();
      ci.removalHeld = held.promise;
      await until(`call ${refused + 1}`, () => ci.count('remove') === refused + 1);
      if (refused > 0) delays.push(await nextRetryDelay());
      ci.removalHeld = undefined;
      held.resolve();
    }
    // A busy one's is spread by a tenth.
    expect(
      delays.map((ms, index) =>
        Math.round((10 * ms) / ([400, 1_000, 800, 2_000, 1_600][index] ?? 0)),
      ),
    ).toEqual([near(10), 10, near(10), 10, near(10)]);
    expect(await handle.result()).toMatchObject({
      outcome: 'absent',
      attempts: answers.length + 1,
    });
    await world.close();

    async function nextRetryDelay(): Promise<number> {
      const { raw } = await handle.describe();
      const delay = raw.pendingActivities?.[0]?.lastFailure?.applicationFailureInfo?.nextRetryDelay;
      return Number(delay?.seconds ?? 0) * 1_000 + (delay?.nanos ?? 0) / 1_000_000;
    }
  });
});
