/** What commits, branches and tags may be called. Pure. */

/** A commit's id, whole or abbreviated; also what else stands for a version of a change set. */
export const COMMIT = /^[0-9A-Za-z]{1,64}$/;

/** https://git-scm.com/docs/git-check-ref-format */
export const REF = /^[^\s\p{Cc}~^:?*[\\]{1,255}$/u;
