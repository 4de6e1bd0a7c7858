import Table from 'cli-table3';
import { printable } from '../../../core/domain/shownText.ts';

const NO_LINES = { top: '', 'top-mid': '', 'top-left': '', 'top-right': '', bottom: '', 'bottom-mid': '', 'bottom-left': '', 'bottom-right': '', left: '', 'left-mid': '', mid: '', 'mid-mid': '', right: '', 'right-mid': '', middle: '  ' };

/** Aligned columns without lines: easy to read, easy to cut. Cells are cleaned of control characters. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const drawn = new Table({ head: [...head], chars: NO_LINES, style: { head: [], border: [], 'padding-left': 0, 'padding-right': 0 } });
  for (const row of rows) drawn.push(row.map(printable));
  return drawn.toString().split('\n').map((line) => line.trimEnd()).join('\n');
}
