/** Implements `holdfast why`. */
import { explain } from '../../core/why/explain.ts';
import type { WhyFacts } from '../../core/why/facts.ts';
import {
  runnerWorkflowIdFromName,
  setNameFromRunnerName,
} from '../../core/domain/setRunnerNames.ts';
import { CliError } from '../shared/exit.ts';
import type { Output } from '../shared/output.ts';
import type { Session } from '../shared/session.ts';
import { answerLines } from './answerLines.ts';
import { readJob, readRun } from './readJob.ts';
import { readRunner } from './readRunner.ts';
import { readSet } from './readSet.ts';
import type { Subject } from './subject.ts';
import { unlessMissing } from './unlessMissing.ts';

type Env = Readonly<Record<string, string | undefined>>;

/**
 * Explains the subject.
 * @returns whether anything is known about it
 * @throws CliError `not_found`, `unreachable`, `usage`
 */
export async function why(
  session: Session,
  output: Output,
  env: Env,
  subject: Subject,
): Promise<boolean> {
  const answer = explain(await readFacts(session, env, subject));
  output.result(answer, answerLines(answer));
  return answer.state !== 'unknown' || answer.causes.length > 0;
}

async function readFacts(session: Session, env: Env, subject: Subject): Promise<WhyFacts> {
  switch (subject.kind) {
    case 'job':
      return { kind: 'job', ...(await readJob(session, env, subject)) };
    case 'run':
      return { kind: 'run', ...(await readRun(session, env, subject)) };
    case 'named':
      return await readNamed(session, env, subject.name);
  }
}

/** Reads a set or runner by its name or workflow ID, or a runner by its name at the CI server. */
async function readNamed(session: Session, env: Env, name: string): Promise<WhyFacts> {
  const set = await unlessMissing(readSet(session, env, name));
  if (set !== undefined) return { kind: 'set', ...set };
  const own = runnerWorkflowIdFromName(setNameFromRunnerName(name) ?? '', name);
  for (const id of [name, ...(own === undefined ? [] : [own])]) {
    const runner = await unlessMissing(readRunner(session, env, id));
    if (runner !== undefined) return { kind: 'runner', ...runner };
  }
  throw new CliError(
    'not_found',
    `no set or runner ${name} in namespace ${session.settings.namespace}; see "holdfast set list" and "holdfast runner list --all"`,
  );
}
