/** Kinds of CI servers that Holdfast knows. Each credential names the kind of its server. */
export const CI_SERVER_KINDS = ['github'] as const;
export type CiServerKind = (typeof CI_SERVER_KINDS)[number];

/** Kind for credentials and inputs that name none. */
export const DEFAULT_CI_SERVER: CiServerKind = 'github';
