/** Formats figures as a report. Pure. */
import Table from 'cli-table3';
import type { Benchmark, Budget, FigureInfo, Figures } from './benchmark.ts';

/** Returns whether the budget is met, or `undefined` without a budget. */
export function isMet(value: number, budget: Budget | undefined): boolean | undefined {
  if (budget === undefined) return undefined;
  return budget.kind === 'max' ? value <= budget.limit : value >= budget.limit;
}

/** Returns the names of the figures that miss their budgets. */
export function missed(benchmark: Benchmark, figures: Figures): string[] {
  return measuredOf(benchmark, figures)
    .filter(([key, { budget }]) => isMet(figures[key] ?? Number.NaN, budget) === false)
    .map(([key]) => key);
}

/** Returns the figures to report. Missing ones are included unless they are optional. */
function measuredOf(benchmark: Benchmark, figures: Figures): [string, FigureInfo][] {
  return Object.entries(benchmark.figures).filter(
    ([key, { optional }]) => figures[key] !== undefined || optional !== true,
  );
}

/**
 * Converts figures to nested objects: `a.b` becomes `b` in an object `a`. A point between two
 * digits is part of a name.
 */
export function nested(figures: Figures): Record<string, unknown> {
  const root: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(figures)) {
    const path = key.split(/(?<!\d)\.|\.(?!\d)/);
    const name = path.pop() ?? key;
    let at = root;
    for (const part of path) at = (at[part] ??= {}) as Record<string, unknown>;
    at[name] = value;
  }
  return root;
}

/** Formats the table of figures. */
export function reportTable(benchmark: Benchmark, figures: Figures): string {
  const table = new Table({
    head: ['figure', 'value', 'budget', 'met', 'what'],
    style: { head: [], border: [] },
    wordWrap: true,
    colWidths: [null, null, 22, null, 60],
  });
  for (const [key, info] of measuredOf(benchmark, figures)) {
    const value = figures[key] ?? Number.NaN;
    table.push([
      key,
      `${value.toLocaleString('en-US')} ${info.unit}`,
      budgetText(info),
      metText(isMet(value, info.budget)),
      whatText(info),
    ]);
  }
  return table.toString();
}

function budgetText({ budget }: FigureInfo): string {
  if (budget === undefined) return '';
  return `${budget.kind === 'max' ? '≤' : '≥'} ${budget.limit.toLocaleString('en-US')}${budget.note === undefined ? '' : ` (${budget.note})`}`;
}

function metText(met: boolean | undefined): string {
  if (met === undefined) return '';
  return met ? 'yes' : 'NO';
}

function whatText({ what, compare }: FigureInfo): string {
  return compare === undefined ? what : `${what}. ${compare}`;
}
