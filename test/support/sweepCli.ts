import type { SweepInput } from '../../core/contract/index.ts';
import { parseSweepInput } from '../../core/input/sweep.ts';
import { printSweep } from '../../cli/sweep/sweepReport.ts';
import { standaloneConfig, sweepStandalone } from '../../cli/sweep/sweepStandalone.ts';
import { Session } from '../../cli/shared/session.ts';
import { Output } from '../../cli/shared/output.ts';
import { recordingTerminal, type CliRun } from './cli.ts';

/** Flags with which no object is too young, and no list too old. */
export const AT_ONCE: SweepInput = { minAge: '0s', listMaxAge: '0s' };

/** `holdfast sweep --standalone` in this process, {@link AT_ONCE}. */
export async function sweepAtOnce(env: Record<string, string>, json = false): Promise<CliRun> {
  const terminal = recordingTerminal(env);
  const output = new Output(terminal, json ? 'json' : 'text');
  const parsed = parseSweepInput(AT_ONCE);
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.errors));
  const session = await Session.open({}, env);
  try {
    const status = printSweep(
      output,
      await sweepStandalone(session, output, standaloneConfig(env), parsed.spec),
    );
    return { status, ...terminal.written };
  } finally {
    await session.close();
  }
}
