import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { runningRunnersQuery } from '../../../core/domain/visibility.ts';
import { chosen, type Fault } from './fault.ts';

const CLI = fileURLToPath(new URL('../../../cli/main.ts', import.meta.url));

export const runnerFaults = {
  foreign_sweep: async ({ foreignSettings }) => {
    await promisify(execFile)(process.execPath, [CLI, 'sweep', '--standalone', '--force'], {
      env: { ...process.env, ...foreignSettings },
    });
    return {};
  },
  life_terminated: async ({ client, name, observer }, { pick }) => {
    const lives: string[] = [];
    for await (const { workflowId } of client.workflow.list({ query: runningRunnersQuery(name) }))
      lives.push(workflowId);
    const life = chosen(lives.toSorted(), pick);
    if (life === undefined) return undefined;
    observer.add({ kind: 'told', life, how: 'terminated' });
    await client.workflow.getHandle(life).terminate('chaos');
    return { whom: life };
  },
} satisfies Record<string, Fault>;
