/** From figures to what people read. Pure. */
import Table from 'cli-table3';
import type { Benchmark, Budget, FigureInfo, Figures } from './benchmark.ts';

/** @returns whether the budget is met; `undefined` without a budget */
export function isMet(value: number, budget: Budget | undefined): boolean | undefined {
  if (budget === undefined) return undefined;
  return budget.kind === 'max' ? value <= budget.limit : value >= budget.limit;
}

/** Names of the figures that miss their budgets. */
export function missed(benchmark: Benchmark, figures: Figures): string[] {
  return Object.entries(benchmark.figures)
    .filter(([key, { budget }]) => isMet(figures[key] ?? Number.NaN, budget) === false)
    .map(([key]) => key);
}

export function reportTable(benchmark: Benchmark, figures: Figures): string {
  const table = new Table({ head: ['figure', 'value', 'budget', 'met', 'what'], style: { head: [], border: [] }, wordWrap: true, colWidths: [null, null, 22, null, 60] });
  for (const [key, info] of Object.entries(benchmark.figures)) {
    const value = figures[key] ?? Number.NaN;
    table.push([key, `${value.toLocaleString('en-US')} ${info.unit}`, budgetText(info), metText(isMet(value, info.budget)), whatText(info)]);
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
