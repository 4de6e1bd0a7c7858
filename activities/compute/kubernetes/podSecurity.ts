/**
 * Security context of a pod for the fields that its template does not set: that of Pod Security's
 * `restricted`, as far as the image permits it. Pure.
 */
import type { V1PodSecurityContext, V1SecurityContext } from '@kubernetes/client-node';
import { mergeTemplates } from './mergeTemplates.ts';

const CONFINED = { seccompProfile: { type: 'RuntimeDefault' } };

/**
 * Merges the security context of the template into the defaults, field by field.
 * @param more - further defaults for this pod
 */
export function podSecurityContext(
  template: V1PodSecurityContext | undefined,
  more?: V1PodSecurityContext,
): V1PodSecurityContext {
  return mergeTemplates(mergeTemplates(CONFINED, more), template) as V1PodSecurityContext;
}

/**
 * Merges the security context of the template into the defaults of the runner's containers. The
 * defaults permit neither `sudo` nor capabilities. A template that needs them sets
 * `allowPrivilegeEscalation: true` and `capabilities: {drop: []}`.
 * @param user - UID of the image, if it is known and not root
 */
export function containerSecurityContext(
  template: V1SecurityContext | undefined,
  ofPod: V1PodSecurityContext | undefined,
  user?: number,
): V1SecurityContext {
  // The API server accepts no other fields together with this one.
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

/** Security context of Holdfast's own containers, which need no privileges. */
export const RESTRICTED_SECURITY_CONTEXT: V1SecurityContext = {
  ...CONFINED,
  allowPrivilegeEscalation: false,
  capabilities: { drop: ['ALL'] },
  readOnlyRootFilesystem: true,
  runAsNonRoot: true,
  // UID of `node` in the worker's image, whose user is also given by number. Any UID would do.
  runAsUser: 1000,
};

/**
 * Returns whether the template adds a capability that implies privilege escalation:
 * https://github.com/kubernetes/kubernetes/blob/v1.34.3/pkg/apis/core/validation/validation.go
 * (ValidateSecurityContext)
 */
function mayEscalate(template: V1SecurityContext | undefined): boolean {
  return [template?.capabilities?.add]
    .flat()
    .some((name) => name === 'SYS_ADMIN' || name === 'CAP_SYS_ADMIN');
}
