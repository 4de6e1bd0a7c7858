/**
 * Pattern of words without characters that are special in a shell. A word that begins with "-"
 * would be an option.
 */
const SHELL_WORD = /^[A-Za-z0-9_./:@%+=][A-Za-z0-9_./:@%+=-]*$/;

/**
 * Returns whether every shell reads the text as one literal word. The client that starts a workflow
 * chooses its ID, and a completed word runs with the permissions of the user.
 */
export function isShellWord(text: string): boolean {
  return SHELL_WORD.test(text);
}
