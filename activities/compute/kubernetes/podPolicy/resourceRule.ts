import type { PodPolicy } from './podPolicy.ts';
import { parseQuantity } from './quantity.ts';
import {
  celList,
  containerViolations,
  defined,
  everyContainer,
  type MaybeViolation,
  type PodRule,
} from './podRule.ts';

/** Resources whose limit a policy with a maximum requires. */
export const BASIC_RESOURCES: readonly string[] = ['cpu', 'memory', 'ephemeral-storage'];

/** Returns the requests and limits of a container or pod above the maximum, or without one. */
function excessiveResources(
  own: { limits?: Record<string, unknown>; requests?: Record<string, unknown> } | undefined,
  resources: PodPolicy['resources'],
  path: string,
): MaybeViolation[] {
  return (['limits', 'requests'] as const).flatMap((list) =>
    Object.entries(own?.[list] ?? {}).map(([name, quantity]) => {
      const max = resources[name];
      if (max === undefined)
        return !BASIC_RESOURCES.includes(name) && `${path}.${list}.${name}: the resource "${name}"`;
      const [asked, ceiling] = [parseQuantity(quantity), parseQuantity(max)];
      // A value that cannot be compared is not within the limit.
      return (
        !(asked !== undefined && ceiling !== undefined && asked <= ceiling) &&
        `${path}.${list}.${name}: ${asked === undefined ? 'no quantity' : String(quantity)}, where at most ${max} is allowed`
      );
    }),
  );
}

/** Returns the same rule as a CEL expression. @param object - expression of the resources */
function isWithin(object: string): string {
  // The API server's type checker does not know these maps of quantities.
  const resources = `dyn(${object})`;
  return ['limits', 'requests']
    .map(
      (list) =>
        `(!has(${resources}.${list}) || ${resources}.${list}.all(r, r in variables.policy.resources ? !quantity(${resources}.${list}[r]).isGreaterThan(quantity(variables.policy.resources[r])) : r in ${JSON.stringify(BASIC_RESOURCES)}))`,
    )
    .join(' && ');
}

/** Rule of the resources that a pod may request. */
export const RESOURCE_RULE: PodRule = {
  field: 'resources',
  violations: (pod, { resources }) => [
    ...containerViolations(pod, ({ resources: own }, path) => [
      ...BASIC_RESOURCES.map(
        (name) =>
          resources[name] !== undefined &&
          own?.limits?.[name] === undefined &&
          `${path}.resources.limits.${name}: none, where at most ${resources[name]} is allowed`,
      ),
      ...excessiveResources(own, resources, `${path}.resources`),
    ]),
    ...defined(excessiveResources(pod.spec.resources, resources, 'resources')),
  ],
  cel: [
    everyContainer(
      [
        `${celList(BASIC_RESOURCES)}.all(r, !(r in variables.policy.resources) || (has(c.resources) && has(dyn(c.resources).limits) && r in dyn(c.resources).limits))`,
        `(!has(c.resources) || (${isWithin('c.resources')}))`,
      ].join(' && '),
    ),
    `(!has(object.spec.resources) || (${isWithin('object.spec.resources')}))`,
  ].join(' && '),
};
