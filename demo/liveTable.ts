/** What the audience sees while the demo plays: one line per runner, kept up to date on a terminal; one line per change elsewhere. */
import { setTimeout as delay } from 'node:timers/promises';
import { truncate } from '../core/domain/displayText.ts';
import { table } from '../cli/shared/table.ts';
import type { ScenarioRun } from './scenarios.ts';

const HEAD = ['RUNNER', 'PHASE', 'WAITS FOR', 'TRIES', 'NAME AT THE CI SERVER'];

/** Draws until `signal` aborts. */
export async function drawWhile(
  acts: readonly ScenarioRun[],
  signal: AbortSignal,
  out: NodeJS.WriteStream,
): Promise<void> {
  let drawn = 0;
  const seen = new Map<string, string>();
  const draw = (): void => {
    if (!out.isTTY) {
      for (const act of acts) {
        const [id = '', phase = '', waits = ''] = row(act);
        if (seen.get(id) === phase) continue;
        seen.set(id, phase);
        out.write(
          `${new Date().toISOString()} ${id} ${phase}${waits === '' ? '' : ` (waits for: ${waits})`}\n`,
        );
      }
      return;
    }
    // A wrapped line would be two where one is redrawn.
    const lines = table(HEAD, acts.map(row))
      .split('\n')
      .map((line) => line.slice(0, (out.columns || 200) - 1));
    out.write(`${drawn > 0 ? `\u001b[${drawn}A\u001b[J` : ''}${lines.join('\n')}\n`);
    drawn = lines.length;
  };
  while (!signal.aborted) {
    await Promise.all(
      acts
        .filter((act) => act.result === undefined)
        .map(async (act) => await act.look().catch(() => undefined)),
    );
    draw();
    await delay(300, undefined, { signal }).catch(() => undefined);
  }
  draw();
}

function row({ id, status, result }: ScenarioRun): string[] {
  if (result !== undefined)
    return [
      id,
      `${result.outcome}${result.cause === undefined ? '' : `/${result.cause}`}`,
      '',
      String(result.unregisterAttempts),
      result.runnerName ?? '',
    ];
  return [
    id,
    status?.phase ?? 'Requested',
    truncate(status?.waitingFor ?? '', 60),
    String(status?.unregisterAttempts ?? 0),
    status?.runnerName ?? '',
  ];
}
