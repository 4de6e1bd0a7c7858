/** Maximum length of a reason (characters). */
const MAX_REASON = 200;

/**
 * Returns the reasons in the scheduler's message about a pod, without the numbers of nodes: `0/3
 * nodes are available: 1 node(s) had untolerated taint {a: b}, 2 Insufficient cpu. preemption: ...`
 * becomes `node(s) had untolerated taint {a: b}, Insufficient cpu`.
 */
export function unschedulableReason(message: string): string {
  const [, reasons = message] = /nodes are available: (.*)$/s.exec(message) ?? [];
  const [sentence = ''] = reasons.split(/\. |\.$/);
  const names = sentence.split(', ').map((reason) => reason.replace(/^\d+ /, ''));
  return [...new Set(names)].join(', ').slice(0, MAX_REASON);
}
