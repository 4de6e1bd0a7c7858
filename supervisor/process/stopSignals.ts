import type { SupervisorAction } from '../signals/actions.ts';
import { sendSignal, type CommandProcesses } from './commandProcesses.ts';

/** Sends the signals of a stop to the command, and knows which processes have had them. */
export class StopSignals {
  readonly #processes: CommandProcesses;
  /** Processes of the command's group when the first stop signal was sent: start time by PID. */
  #signalledGroup: ReadonlyMap<number, number> | undefined;
  /**
   * Whether the command has received SIGTERM. A second SIGTERM would run its trap again, or end its
   * cleanup.
   */
  #commandHadTerm = false;

  constructor(processes: CommandProcesses) {
    this.#processes = processes;
  }

  /**
   * Sends a signal. The leader of the process group may have ended while the group is still
   * running, and the ids of ended processes may have been reused.
   * @param how.ended - whether the command has ended
   */
  send(
    { signal, to }: SupervisorAction & { kind: 'sendStop' },
    { ended }: { readonly ended: boolean },
  ): void {
    const { child } = this.#processes;
    if (child === undefined) return;
    // A process stopped by SIGSTOP handles a signal only after it has been continued.
    const send = (pid: number): void => {
      sendSignal(pid, signal);
      if (signal === 'SIGTERM') sendSignal(pid, 'SIGCONT');
    };
    this.#signalledGroup ??= this.#processes.group();
    if (to === 'earlier') {
      const now = this.#processes.group();
      for (const [pid, startedAt] of this.#signalledGroup)
        if (now.get(pid) === startedAt && (pid !== child || (!ended && !this.#commandHadTerm)))
          send(pid);
    } else if (!ended) {
      if (signal === 'SIGTERM') this.#commandHadTerm = true;
      send(to === 'group' ? -child : child);
    } else if (to === 'group' && this.#processes.groupAlive()) send(-child);
  }
}
