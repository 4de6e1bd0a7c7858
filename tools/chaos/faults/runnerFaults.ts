import { runningRunnersQuery } from '../../../core/domain/visibility.ts';
import { chosen, type Fault } from './fault.ts';

export const runnerFaults = {
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
