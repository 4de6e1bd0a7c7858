/** Characters that no shell gives a meaning to. A word that begins with "-" is taken for an option. */
const SHELL_WORD = /^[A-Za-z0-9_./:@%+=][A-Za-z0-9_./:@%+=-]*$/;

/**
 * Whether every shell takes the text for one word, as it is. Whoever may start a workflow chooses its ID, and what a shell completes is carried out
 * with the rights of the person who types.
 */
export function isShellWord(text: string): boolean {
  return SHELL_WORD.test(text);
}
