// The list of flaky test files: .ci/quarantine, one per line with date, path and reason.
import { readFileSync } from 'node:fs';

/**
 * Returns the entries of a quarantine list.
 * @throws Error for a line without date, path or reason
 */
export function readQuarantine(path) {
  return readFileSync(path, 'utf8')
    .split('\n')
    .filter((line) => line.trim() !== '' && !line.startsWith('#'))
    .map((line) => {
      const [, since, file, reason] = /^(\d{4}-\d{2}-\d{2})\s+(\S+)\s+(\S.*)$/.exec(line) ?? [];
      if (reason === undefined)
        throw new Error(`${path}: "${line}" must be a date, a test file and a reason`);
      return { since, file, reason };
    });
}
