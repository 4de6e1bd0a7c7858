/** The first SIGTERM or SIGINT asks the worker to stop; the second ends the process at once. */
import { EXIT_STATUS } from './exitStatus.ts';

type SignalName = 'SIGTERM' | 'SIGINT';
/** What the signals are called in the log, as in Go's and the kubelet's. */
const DESCRIPTIONS = { SIGTERM: 'terminated', SIGINT: 'interrupt' } as const satisfies Record<
  SignalName,
  string
>;

export interface StopSignal {
  /** Aborted by the first of the signals. */
  readonly signal: AbortSignal;
  /** The signal that came first. */
  readonly name: SignalName | undefined;
  readonly description: string;
  /** Gives the signals their default meaning back. */
  dispose(): void;
}

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
