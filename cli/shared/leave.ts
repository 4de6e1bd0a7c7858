/** Ends an attached command while the followed object continues. */
import { EXIT } from './exit.ts';
import type { ProgressLine } from './phaseLine.ts';
import type { StartedRunner } from '../runner/startRunner.ts';
import type { ExitReason } from './attachSignals.ts';
import type { AttachTarget } from './attachTarget.ts';
import type { CancelRequests } from './cancelRequests.ts';

/** Time that detaching waits for a cancel request in flight (ms). */
const DETACH_WAIT_MS = 1_500;

/** Exits before Temporal has confirmed the start. */
export async function exitBeforeStart(
  line: ProgressLine,
  workflowId: string,
  how: ExitReason,
  requests: CancelRequests,
  { commands }: AttachTarget,
): Promise<number> {
  const { any } = requests;
  const delivered = await requests.settled(DETACH_WAIT_MS);
  if (how.kind === 'detach') {
    const state = !any || delivered ? 'goes on' : `was not cancelled (${commands.cancel})`;
    line.message(
      'detached',
      `detached (${how.signal}) before the start of ${workflowId} was answered: if it was started it ${state}; re-attach with: ${commands.attach} ${workflowId}`,
    );
    return how.signal === 'SIGTERM' ? EXIT.sigterm : EXIT.sighup;
  }
  line.message(
    'left',
    delivered
      ? `exited: ${workflowId} was started, and keeps its cancel request; see it with: ${commands.get} ${workflowId}`
      : `exited before the start of ${workflowId} was confirmed; the cancel request was not delivered. See whether it runs with: ${commands.get} ${workflowId}; cancel it with: ${commands.cancel} ${workflowId}`,
  );
  return EXIT.failed;
}

/**
 * Detaches from the runner or job, which continues. A cancel request in flight is delivered first,
 * if possible.
 */
export async function detach(
  line: ProgressLine,
  workflowId: string,
  signal: 'SIGTERM' | 'SIGHUP',
  requests: CancelRequests,
  { commands }: AttachTarget,
): Promise<number> {
  const { any } = requests;
  const delivered = await requests.settled(DETACH_WAIT_MS);
  line.end();
  const cancelState = delivered
    ? 'keeps its cancel request'
    : `was not cancelled, because Temporal does not answer; send the request with: ${commands.cancel} ${workflowId}`;
  const state = any ? cancelState : 'continues';
  line.message(
    'detached',
    `detached (${signal}): ${workflowId} ${state}; re-attach with: ${commands.attach} ${workflowId}`,
  );
  return signal === 'SIGTERM' ? EXIT.sigterm : EXIT.sighup;
}

/** Exits without waiting for the end of the runner or job, whose end was requested. */
export async function exit(
  line: ProgressLine,
  runner: StartedRunner,
  requests: CancelRequests,
  { commands }: AttachTarget,
): Promise<number> {
  const delivered = await requests.settled(DETACH_WAIT_MS);
  line.end();
  line.message(
    'left',
    delivered
      ? `exited: ${runner.workflowId} keeps its cancel request; see it with: ${commands.get} ${runner.workflowId}`
      : `exited, and the cancel request was not delivered, because Temporal does not answer; send it with: ${commands.cancel} ${runner.workflowId}`,
  );
  return EXIT.failed;
}
