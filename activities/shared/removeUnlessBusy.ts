import type { Scope } from '../../core/domain/ciServer.ts';
import { CiServerError } from '../ports/ciServerError.ts';
import type { CiServer } from '../ports/ciServer.ts';

/**
 * Removes a registration without ending a job. If the server would remove a busy runner, the state
 * of the runner is checked first. If the server can disable runners, the runner is disabled before
 * the check, so that it gets no job between the check and the removal.
 * @throws CiServerError `busy` if the runner is running a job, and all errors of
 * {@link CiServer.removeRegistration}
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
