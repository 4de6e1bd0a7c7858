/** Output of the reports. */

/** Writes a line to stdout. */
export const write = (line: string): void => void process.stdout.write(`${line}\n`);

/** Returns a line of a table: a name, figures aligned to the right, and a remark. */
export function row(...[name, ...cells]: (string | number)[]): string {
  const figures = cells.slice(0, -1).map((cell) => String(cell).padStart(9));
  return `${String(name).padEnd(26)}${figures.join('')}  ${cells.at(-1)}`.trimEnd();
}
