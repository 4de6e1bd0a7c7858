import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { runningRunnersQuery } from '../../../core/domain/visibility.ts';
import { choose, type Fault } from './fault.ts';

const CLI = fileURLToPath(new URL('../../../cli/main.ts', import.meta.url));

export const runnerFaults = {
  foreign_sweep: async ({ foreignSettings }) => {
    await promisify(execFile)(process.execPath, [CLI, 'sweep', '--standalone', '--force'], {
      env: { ...process.env, ...foreignSettings },
    });
    return {};
  },
  workflow_terminated: async ({ client, name, observer }, { pick }) => {
    const running: string[] = [];
    for await (const runner of client.workflow.list({ query: runningRunnersQuery(name) }))
      running.push(runner.workflowId);
    const workflowId = choose(running.toSorted(), pick);
    if (workflowId === undefined) return undefined;
    observer.add({ kind: 'stopRequested', workflowId, how: 'terminated' });
    await client.workflow.getHandle(workflowId).terminate('chaos');
    return { target: workflowId };
  },
} satisfies Record<string, Fault>;
