/** Supported kinds of CI servers. Each credential names the kind of its server. */
export const CI_SERVER_KINDS = ['github', 'gitea'] as const;
/** Kind of CI server. */
export type CiServerKind = (typeof CI_SERVER_KINDS)[number];

/** Kind for credentials and inputs that do not name one. */
export const DEFAULT_CI_SERVER: CiServerKind = 'github';

/**
 * Slug of the only enterprise of a kind of CI server, to which every owner belongs. Absent if there
 * may be several enterprises. The enterprise of Gitea is the whole instance.
 */
export const ENTERPRISE_OF_SERVER: Readonly<Partial<Record<CiServerKind, string>>> = {
  gitea: 'instance',
};
