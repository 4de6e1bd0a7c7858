import type { RegisterRequest } from '../../../core/domain/ciServer.ts';
import { omitUndefined } from '../../../core/domain/omitUndefined.ts';
import type { Registration } from '../../ports/ciServer.ts';
import { registrationUrl, scopePath } from './addresses.ts';
import type { RestApi } from './api.ts';
import type { RegistrationTokens } from './registrationTokens.ts';
import { jitAnswer } from './responses.ts';
import type { RunnerGroups } from './runnerGroups.ts';
import type { GitHubScaleSets } from './scaleSets.ts';
import { requestInScope, scopeRequest } from './scopeRequests.ts';

/**
 * Makes the runner print a message and exit with code 7 when GitHub no longer accepts its version.
 */
const RUNNER_ENV = { ACTIONS_RUNNER_RETURN_VERSION_DEPRECATED_EXIT_CODE: '1' } as const;

/** Collaborators of {@link RunnerRegistrations}. */
export interface RegistrationParts {
  readonly api: RestApi;
  readonly groups: RunnerGroups;
  readonly tokens: RegistrationTokens;
  readonly scaleSets: GitHubScaleSets;
  /** URL of the server's pages, from which runners connect. */
  readonly webUrl: string;
  /** Whether public repositories may use the runners. */
  readonly allowPublicRepositories: boolean;
}

/** Registers runners: just in time, with a registration token, or in a scale set. */
export class RunnerRegistrations {
  readonly #parts: RegistrationParts;

  constructor(parts: RegistrationParts) {
    this.#parts = parts;
  }

  /**
   * Creates the registration of a runner.
   * @throws CiServerError as `CiServer.register`
   */
  async register(request: RegisterRequest, signal?: AbortSignal): Promise<Registration> {
    const { groups, allowPublicRepositories } = this.#parts;
    if (!allowPublicRepositories) await groups.rejectPublic(request.scope, request.group, signal);
    if (request.scaleSet !== undefined)
      return await this.#registerInScaleSet(request, request.scaleSet, signal);
    return request.mode === 'jit'
      ? this.#registerJit(request, signal)
      : this.#registerWithToken(request, signal);
  }

  async #registerInScaleSet(
    request: RegisterRequest,
    scaleSet: string,
    signal?: AbortSignal,
  ): Promise<Registration> {
    const { id, name, jitConfig } = await this.#parts.scaleSets.register(request, scaleSet, signal);
    return {
      runnerName: name,
      runnerId: id,
      env: { ...RUNNER_ENV, ACTIONS_RUNNER_INPUT_JITCONFIG: jitConfig },
    };
  }

  async #registerJit(wanted: RegisterRequest, signal?: AbortSignal): Promise<Registration> {
    const { scope, name, group, labels } = wanted;
    const groupId = await this.#parts.groups.resolveId(scope, group, signal);
    const request = scopeRequest('jit', 'POST', scope, '/actions/runners/generate-jitconfig', {
      name,
      runner_group_id: groupId,
      labels,
      work_folder: '_work',
    });
    if (!wanted.ephemeral)
      throw this.#parts.api.toError(
        'rejected',
        request,
        'a just-in-time runner is always ephemeral: register a static runner with a token',
      );
    const answer = await requestInScope(this.#parts.api, request, scope, signal);
    if (answer.status === 404) {
      this.#parts.groups.forget(scope);
      const what =
        group !== 'default' && 'name' in group
          ? `"${group.name}" (${groupId}) may not be used or does not exist; check runnerGroup`
          : `${groupId} does not exist or may not be used: check runnerGroupId`;
      throw this.#parts.api.toError('rejected', request, `runner group ${what}`, 404);
    }
    const jit = this.#parts.api.parse(jitAnswer, answer, request);
    return {
      runnerName: jit.runner.name,
      runnerId: jit.runner.id,
      env: { ...RUNNER_ENV, ACTIONS_RUNNER_INPUT_JITCONFIG: jit.encoded_jit_config },
    };
  }

  async #registerWithToken(wanted: RegisterRequest, signal?: AbortSignal): Promise<Registration> {
    const { scope, name, labels, ephemeral, disableUpdate } = wanted;
    const group = await this.#parts.groups.resolveName(wanted, signal);
    const token = await this.#parts.tokens.of(scope).get(signal);
    return {
      runnerName: name,
      env: omitUndefined({
        ...RUNNER_ENV,
        RUNNER_TOKEN: token,
        RUNNER_URL: registrationUrl(this.#parts.webUrl, scope),
        RUNNER_SCOPE: scopePath(scope),
        RUNNER_NAME: name,
        RUNNER_LABELS: labels.join(','),
        RUNNER_EPHEMERAL: String(ephemeral),
        RUNNER_GROUP: group,
        RUNNER_DISABLE_UPDATE: disableUpdate === true ? 'true' : undefined,
      }),
    };
  }
}
