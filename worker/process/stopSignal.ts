/**
 * Handles SIGTERM and SIGINT. The first signal requests the worker to stop; the second ends the
 * process immediately.
 */
import { EXIT_STATUS } from './exitStatus.ts';

type SignalName = 'SIGTERM' | 'SIGINT';
/** Names of the signals in the log, as in Go and the kubelet. */
const DESCRIPTIONS = { SIGTERM: 'terminated', SIGINT: 'interrupt' } as const satisfies Record<
  SignalName,
  string
>;

/** Request to stop this process, by SIGTERM or SIGINT. */
export interface StopSignal {
  /** Aborted by the first signal. */
  readonly signal: AbortSignal;
  /** First signal, if there was one. */
  readonly name: SignalName | undefined;
  readonly description: string;
  /** Restores the default handling of the signals. */
  dispose(): void;
}

/** Listens for SIGTERM and SIGINT. The second signal ends the process immediately. */
export function listenForShutdown(target: NodeJS.Process = process): StopSignal {
  const controller = new AbortController();
  let name: SignalName | undefined;
  const handler = (received: NodeJS.Signals): void => {
    const known = received === 'SIGINT' ? 'SIGINT' : 'SIGTERM';
    if (name !== undefined) target.exit(EXIT_STATUS[known]);
    name = known;
    controller.abort();
  };
  target.on('SIGTERM', handler).on('SIGINT', handler);
  return {
    signal: controller.signal,
    get name() {
      return name;
    },
    get description() {
      return DESCRIPTIONS[name ?? 'SIGTERM'];
    },
    dispose: () => void target.off('SIGTERM', handler).off('SIGINT', handler),
  };
}
