import Table from 'cli-table3';
import { stripControlCharacters } from '../../core/domain/displayText.ts';

const NO_LINES = {
  top: '',
  'top-mid': '',
  'top-left': '',
  'top-right': '',
  bottom: '',
  'bottom-mid': '',
  'bottom-left': '',
  'bottom-right': '',
  left: '',
  'left-mid': '',
  mid: '',
  'mid-mid': '',
  right: '',
  'right-mid': '',
  middle: '  ',
};

/** Column of a list. */
export interface Column<Row> {
  readonly head: string;
  readonly cell: (row: Row) => string | undefined;
  /** Whether the column is shown only in `--output wide`. @default false */
  readonly wide?: true;
}

/** Formats rows as a table. Unknown values are shown as `-`. */
export function listTable<Row>(
  columns: readonly Column<Row>[],
  rows: readonly Row[],
  wide: boolean,
): string {
  const shown = columns.filter((column) => wide || column.wide !== true);
  return table(
    shown.map(({ head }) => head),
    rows.map((row) => shown.map(({ cell }) => cell(row) ?? '-')),
  );
}

/**
 * Formats aligned columns without lines, which are easy to read and to parse. Control characters
 * are removed from the cells.
 */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const drawn = new Table({
    head: [...head],
    chars: NO_LINES,
    style: { head: [], border: [], 'padding-left': 0, 'padding-right': 0 },
  });
  for (const row of rows) drawn.push(row.map(stripControlCharacters));
  return drawn
    .toString()
    .split('\n')
    .map((line) => line.trimEnd())
    .join('\n');
}
