import { condemned, FINE, skip, type Judgement, type SeenRegistration } from './facts.ts';

/** Is this a registration without a runner? The first row that matches decides. */
export function judgeRegistration({
  name,
  proof,
  alive,
  hasPod,
  handedOn,
  online,
  busy,
}: SeenRegistration): Judgement {
  if (alive) return FINE;
  if (proof === undefined) return skip('not ours');
  // The sweep that stops the pod sees to its registration, too.
  if (hasPod) return skip('in use');
  if (handedOn !== undefined) return skip('handed on');
  if (online || busy) return skip('online or busy');
  return condemned(
    'ghost registration',
    `${name} is registered, and has neither a workflow nor a pod`,
  );
}
