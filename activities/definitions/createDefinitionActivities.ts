/** What a declared job's workflow may ask of the world. */
import { activityInfo, getClient } from '@temporalio/activity';
import type { DefinitionActivities } from '../../core/activities/index.ts';
import { JOB_GROUP_WORKFLOW, jobVersionSignal } from '../../core/contract/index.ts';
import { defined } from '../../core/domain/omitUndefined.ts';
import { fairnessKey } from '../../core/domain/fairnessKey.ts';
import { withHeartbeats } from '../shared/heartbeats.ts';
import type { ActivityPorts } from '../ports.ts';
import { nextStart } from '../runnerSet/schedules.ts';
import { admitDefinition } from './admitDefinition.ts';
import { changedPaths } from './changedPaths.ts';
import { findOver } from './findOver.ts';

export function createDefinitionActivities(ports: ActivityPorts): DefinitionActivities {
  return {
    admitDefinition: async (input) => admitDefinition(ports, input),
    nextScheduled: async ({ schedules, afterMs }) =>
      defined({ nextAtMs: nextStart(schedules, Math.max(afterMs, Date.now())) }),
    handVersion,
    findOver,
    changedPaths: async (input) => await changedPaths(ports, input),
  };
}

/** The same version twice is one to the group. */
const handVersion: DefinitionActivities['handVersion'] = async ({ group, version }) => {
  const { repository, name } = version.job;
  await withHeartbeats(
    `version for ${group}`,
    async () =>
      await getClient().workflow.signalWithStart(JOB_GROUP_WORKFLOW, {
        workflowId: group,
        taskQueue: activityInfo().taskQueue,
        args: [],
        signal: jobVersionSignal,
        signalArgs: [version],
        priority: { fairnessKey: fairnessKey(repository ?? name) },
      }),
  );
};
