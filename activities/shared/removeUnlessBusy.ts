import type { Scope } from '../../core/domain/ciServer.ts';
import { CiServerError, type CiServer } from '../ports.ts';

/**
 * Removes a registration without ending a job. A server that removes busy runners is asked about the runner first; one that can disable
 * runners gives it no further job from then on, so that the answer still holds at the removal.
 * @throws CiServerError `busy` if the runner runs a job, and all others of {@link CiServer.removeRegistration}
 */
export async function removeUnlessBusy(
  server: CiServer,
  scope: Scope,
  runner: { readonly id: string; readonly name: string },
  signal?: AbortSignal,
): Promise<'removed' | 'absent'> {
  if (!server.traits.refusesBusyRemoval) {
    if (server.traits.canDisable) await server.disable?.(scope, runner.id, signal);
    const found = await server.findRunner(scope, runner, signal);
    if (found?.busy === true)
      throw new CiServerError('busy', `${runner.name} runs a job, and its removal would end that`);
  }
  return await server.removeRegistration(scope, runner.id, signal);
}
