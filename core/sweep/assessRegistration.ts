import { finding, OK, skip, type Assessment, type ObservedRegistration } from './facts.ts';

/** Assesses whether a registration is orphaned. The first matching row applies. */
export function assessRegistration({
  name,
  proof,
  hasRunner,
  hasPod,
  superseded,
  deregistrationId,
  online,
  busy,
}: ObservedRegistration): Assessment {
  if (hasRunner) return OK;
  if (proof === undefined) return skip('foreign');
  // The sweep that stops the pod also removes its registration.
  if (hasPod) return skip('in_use');
  if (deregistrationId !== undefined) return skip('handed_off');
  if (online || busy) return skip('online_or_busy');
  return finding(
    'orphaned_registration',
    superseded === true
      ? `${name} is registered, and its workflow has replaced its runner`
      : `${name} is registered, and has neither a workflow nor a pod`,
  );
}
