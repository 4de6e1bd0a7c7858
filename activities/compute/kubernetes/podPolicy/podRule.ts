/**
 * A rule of a pod policy, with what the rules have in common: the visits of a pod's containers and
 * volumes, and parts of CEL expressions.
 */
import type {
  V1Container,
  V1PersistentVolumeClaimSpec,
  V1PodSpec,
  V1Volume,
} from '@kubernetes/client-node';
import type { PodTemplate } from '../../../../core/domain/pod.ts';
import type { PodField } from './allowedFields.ts';
import type { ImplicitlyAllowed, PodPolicy } from './podPolicy.ts';

/** The pod to check, without fields that are `null`, and the objects that belong to it. */
export interface PolicyInput {
  readonly spec: V1PodSpec;
  /** Labels of the pod, with Holdfast's own. @default none */
  readonly labels?: Readonly<Record<string, string>>;
  /** Annotations of the pod, with Holdfast's own. @default none */
  readonly annotations?: Readonly<Record<string, string>>;
  /**
   * Template of the request, merged under the fields that Holdfast sets.
   * @default none
   */
  readonly template?: PodTemplate;
  /** Fields of the worker's template for which the request has other values. @default none */
  readonly overridden?: readonly PodField[];
  readonly namespace: string;
  /** Name of the pod. The Secret of its registration has the same name. */
  readonly name: string;
  /** Names of claims that are created for this pod alone. */
  readonly claims: readonly string[];
  /**
   * Claims that are created if they do not exist, including those for this pod alone.
   * @default none
   */
  readonly made?: readonly CreatedClaim[];
  /** Whether the pod runs code of an untrusted change. */
  readonly untrusted?: true;
}

/** Fields of a claim that select its data. */
export type Claimed = Pick<
  V1PersistentVolumeClaimSpec,
  'dataSource' | 'dataSourceRef' | 'selector'
>;

/** A claim to create, with the sources of its data. */
export interface CreatedClaim extends Claimed {
  /** Path of the claim in the input. */
  readonly path: string;
  readonly name: string;
}

/** A rule of a pod policy, as a check and as a CEL expression. */
export interface PodRule {
  /**
   * Field of the policy that permits exceptions from the rule. `namespaces` are those of the
   * worker.
   */
  readonly field: keyof PodPolicy | 'namespaces';
  /**
   * Returns each violation with its path in the pod. The list is empty if the pod satisfies the
   * rule.
   */
  readonly violations: (pod: PolicyInput, policy: PodPolicy, own: ImplicitlyAllowed) => string[];
  /**
   * The same rule as a CEL expression, which is true if there is no violation. Absent if the API
   * server cannot know what it is about.
   */
  readonly cel?: string;
}

/** A violation, or `undefined` or `false` if there is none. */
export type MaybeViolation = string | undefined | false;

/** Returns the violations that there are. */
export const defined = (found: readonly MaybeViolation[]): string[] =>
  found.filter((each) => typeof each === 'string');

/** Returns the violations of all containers, init containers first. */
export function containerViolations(
  { spec }: PolicyInput,
  check: (container: V1Container, path: string) => readonly MaybeViolation[],
): string[] {
  const lists = { initContainers: spec.initContainers, containers: spec.containers };
  return Object.entries(lists).flatMap(([list, containers = []]) =>
    containers.flatMap((container, index) => defined(check(container, `${list}[${index}]`))),
  );
}

/** Returns the violations of all volumes. */
export function volumeViolations(
  { spec }: PolicyInput,
  check: (volume: V1Volume, path: string) => readonly MaybeViolation[],
): string[] {
  return (spec.volumes ?? []).flatMap((volume, index) =>
    defined(check(volume, `volumes[${index}]`)),
  );
}

/** Returns a CEL condition on all items of a list that may be absent. */
export const all = (list: string, item: string, condition: string): string =>
  `(!has(${list}) || ${list}.all(${item}, ${condition}))`;

/** Returns a CEL condition on all containers of the pod. */
export const everyContainer = (condition: string): string =>
  `variables.containers.all(c, ${condition})`;

/** Returns a CEL condition on all volumes of the pod. */
export const everyVolume = (condition: string): string =>
  all('object.spec.volumes', 'v', condition);

/** Returns a CEL condition that one of the patterns in a field of the policy covers the value. */
export const isCovered = (value: string, field: keyof PodPolicy): string =>
  `variables.policy.${field}.exists(p, ${value}.matches(p))`;

/** Returns a list of strings as a CEL expression. */
export const celList = (values: readonly string[]): string => JSON.stringify(values);
