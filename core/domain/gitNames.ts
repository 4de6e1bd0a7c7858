/** Patterns of the names of commits, branches and tags. Pure. */

/** ID of a commit, complete or abbreviated, or another name for a version of a change set. */
export const COMMIT = /^[0-9A-Za-z]{1,64}$/;

/** Name of a branch or tag: https://git-scm.com/docs/git-check-ref-format */
export const REF = /^[^\s\p{Cc}~^:?*[\\]{1,255}$/u;
