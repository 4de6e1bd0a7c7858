import { cancellationSignal } from '@temporalio/activity';
import type { DefinitionActivities } from '../../core/activities/index.ts';
import { withHeartbeats } from '../shared/heartbeats.ts';
import type { ActivityPorts } from '../ports.ts';
import { refusal } from '../shared/rejections.ts';

export async function changedPaths(
  { ciServers }: ActivityPorts,
  { credential, scope, pullRequest }: Parameters<DefinitionActivities['changedPaths']>[0],
): Promise<string[] | null> {
  try {
    return (
      (await withHeartbeats(
        'files of a pull request',
        async () =>
          await ciServers.get(credential).changedPaths?.(scope, pullRequest, cancellationSignal()),
      )) ?? null
    );
  } catch (error) {
    throw refusal(error, { credentialsRetryMs: 60_000 }, false);
  }
}
