import { GITEA_RUNNER } from '../../core/domain/runnerKinds/gitea.ts';
import { giteaRunnerImage } from '../../tools/lab/images/definitions.ts';
import { addImages, type LabState } from '../../tools/lab/lab.ts';
import { ClusterWorld } from './clusterWorld.ts';
import type { Gitea } from './gitea.ts';

/**
 * A world whose runners are pods of a real Gitea, with its official runner under the supervisor.
 * @param settings - settings of its workers that override the default ones
 */
export async function openGiteaPods(
  lab: LabState,
  gitea: Gitea,
  settings: Readonly<Record<string, string>> = {},
): Promise<ClusterWorld> {
  await addImages(lab.stateDir, [giteaRunnerImage]);
  await gitea.clear();
  return await ClusterWorld.open(lab, {
    webhook: false,
    settings: {
      HOLDFAST_CREDENTIALS: JSON.stringify({
        default: {
          server: 'gitea',
          type: 'pat',
          tokenEnv: 'GITEA_TOKEN',
          apiUrl: `${gitea.access.url}/api/v1`,
          webUrl: gitea.access.urlForPods,
        },
      }),
      GITEA_TOKEN: gitea.access.token,
      HOLDFAST_RUNNER_IMAGE: giteaRunnerImage.reference,
      HOLDFAST_RUNNER_COMMAND: JSON.stringify(GITEA_RUNNER.image?.command),
      ...settings,
    },
  });
}
