/** What a pod may do on its node where its template does not say: what Pod Security's `restricted` asks for, as far as the image allows. Pure. */
import type { V1PodSecurityContext, V1SecurityContext } from '@kubernetes/client-node';
import { mergeTemplates } from './mergeTemplates.ts';

const CONFINED = { seccompProfile: { type: 'RuntimeDefault' } };

/** The template's own words, field by field, over the defaults. */
export function podSecurityContext(
  template: V1PodSecurityContext | undefined,
): V1PodSecurityContext {
  return mergeTemplates(CONFINED, template) as V1PodSecurityContext;
}

/**
 * The same for the runner's containers. Neither `sudo` nor capabilities: a template that needs them says `allowPrivilegeEscalation: true` and
 * `capabilities: {drop: []}`.
 * @param user - the image's, if it is known and not root
 */
export function containerSecurityContext(
  template: V1SecurityContext | undefined,
  ofPod: V1PodSecurityContext | undefined,
  user?: number,
): V1SecurityContext {
  // The API server takes no other word beside this one.
  if (template?.privileged === true) return template;
  const isUserOpen = [template, ofPod].every(
    (said) => (said?.runAsUser ?? said?.runAsNonRoot) === undefined,
  );
  const defaults: V1SecurityContext = {
    capabilities: { drop: ['ALL'] },
    ...(mayEscalate(template) ? {} : { allowPrivilegeEscalation: false }),
    ...(user !== undefined && isUserOpen ? { runAsNonRoot: true, runAsUser: user } : {}),
  };
  return mergeTemplates(defaults, template) as V1SecurityContext;
}

/** For a container of Holdfast's own, which needs nothing. */
export const RESTRICTED_SECURITY_CONTEXT: V1SecurityContext = {
  ...CONFINED,
  allowPrivilegeEscalation: false,
  capabilities: { drop: ['ALL'] },
  readOnlyRootFilesystem: true,
  runAsNonRoot: true,
  // `node` of the worker's image, which names it by a number, too; any would do.
  runAsUser: 1000,
};

/** To ask for this capability is to ask for that: https://github.com/kubernetes/kubernetes/blob/v1.34.3/pkg/apis/core/validation/validation.go (ValidateSecurityContext) */
function mayEscalate(template: V1SecurityContext | undefined): boolean {
  return [template?.capabilities?.add]
    .flat()
    .some((name) => name === 'SYS_ADMIN' || name === 'CAP_SYS_ADMIN');
}
