import { matchesAny } from './patterns.ts';
import {
  type Claimed,
  type CreatedClaim,
  defined,
  everyVolume,
  isCovered,
  type MaybeViolation,
  type PodRule,
  volumeViolations,
} from './podRule.ts';
import { STORE_VOLUME } from '../../../../core/domain/podTemplate.ts';

/**
 * Returns the violations of a claim. A data source makes the claim a copy of other data, and a
 * volume that is selected by its labels may contain the data of others.
 */
function claimViolations(
  { dataSource, dataSourceRef, selector }: Claimed = {},
  { path, name }: Pick<CreatedClaim, 'path' | 'name'>,
  claims: readonly string[],
): MaybeViolation[] {
  const isAllowed = ({ name: of, namespace }: { name: string; namespace?: string }): boolean =>
    matchesAny(claims, namespace === undefined ? of : `${namespace}/${of}`);
  return [
    dataSource !== undefined &&
      !isAllowed(dataSource) &&
      `${path}.dataSource: the ${dataSource.kind} "${dataSource.name}"`,
    dataSourceRef !== undefined &&
      !isAllowed(dataSourceRef) &&
      `${path}.dataSourceRef: the ${dataSourceRef.kind} "${dataSourceRef.name}"`,
    selector !== undefined &&
      !matchesAny(claims, name) &&
      `${path}.selector: volumes by their labels, for the claim "${name}"`,
  ];
}

/**
 * Returns the same rule as a CEL expression.
 * @param spec - expression of the claim's spec
 * @param name - expression of the claim's name
 */
export function hasNoDataSource(spec: string, name: string): string {
  const ref = `${spec}.dataSourceRef`;
  return [
    `(!has(${spec}.dataSource) || ${isCovered(`${spec}.dataSource.name`, 'claims')})`,
    // `namespace` is a reserved word of CEL.
    `(!has(${ref}) || ${isCovered(`(has(${ref}.__namespace__) ? ${ref}.__namespace__ + "/" + ${ref}.name : ${ref}.name)`, 'claims')})`,
    `(!has(${spec}.selector) || ${isCovered(name, 'claims')})`,
  ].join(' && ');
}

/** Rule of the claims that a pod may mount, and of the data that they may copy. */
export const CLAIM_RULE: PodRule = {
  field: 'claims',
  violations: (pod, { claims }, own) => [
    ...volumeViolations(pod, ({ name, persistentVolumeClaim: claim }, path) => [
      claim !== undefined &&
        !(name === STORE_VOLUME && claim.claimName === own.store) &&
        !pod.claims.includes(claim.claimName) &&
        !matchesAny(claims, claim.claimName) &&
        `${path}.persistentVolumeClaim: the claim "${claim.claimName}"`,
    ]),
    ...volumeViolations(pod, ({ name, ephemeral }, path) =>
      claimViolations(
        ephemeral?.volumeClaimTemplate?.spec,
        { path: `${path}.ephemeral.volumeClaimTemplate.spec`, name: `${pod.name}-${name}` },
        claims,
      ),
    ),
    ...(pod.made ?? []).flatMap((claim) => defined(claimViolations(claim, claim, claims))),
  ],
  // The own claims of a runner workflow are recognized by their names only
  // (activities/compute/naming.ts).
  cel: [
    everyVolume(
      `!has(v.ephemeral) || !has(v.ephemeral.volumeClaimTemplate) || (${hasNoDataSource('v.ephemeral.volumeClaimTemplate.spec', '(object.metadata.name + "-" + v.name)')})`,
    ),
    everyVolume(
      `!has(v.persistentVolumeClaim) || (v.name == "${STORE_VOLUME}" && v.persistentVolumeClaim.claimName == variables.policy.store) || v.persistentVolumeClaim.claimName.matches("^.+-[0-9a-f]{10}-.+$") || ${isCovered('v.persistentVolumeClaim.claimName', 'claims')}`,
    ),
  ].join(' && '),
};
