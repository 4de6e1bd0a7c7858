/**
 * What a suite needs. The tiers for HOLDFAST_REQUIRE are `temporal`, `kubernetes`, `kubelet`,
 * `kwok`, `s3`, `gitea`, and `all`.
 */
export interface LabNeeds {
  temporal?: boolean;
  kubernetes?: boolean;
  nodes?: 'kubelet' | 'kwok';
  s3?: boolean;
  gitea?: boolean;
}

/**
 * Whether HOLDFAST_REQUIRE (comma-separated tiers, or `all`) requires one of the tiers that a suite
 * needs.
 */
export function isRequired(needs: LabNeeds, required: string | undefined): boolean {
  const named = (required ?? '').split(',').map((tier) => tier.trim());
  return named.includes('all') || tiersOf(needs).some((tier) => named.includes(tier));
}

/** Names of the tiers that a suite needs, as HOLDFAST_REQUIRE has them. */
export function tiersOf(needs: LabNeeds): string[] {
  return [
    ...(needs.temporal === true ? ['temporal'] : []),
    ...(needs.kubernetes === true || needs.nodes !== undefined ? ['kubernetes'] : []),
    ...(needs.nodes === undefined ? [] : [needs.nodes]),
    ...(needs.s3 === true ? ['s3'] : []),
    ...(needs.gitea === true ? ['gitea'] : []),
  ];
}
