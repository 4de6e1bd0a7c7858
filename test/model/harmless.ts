/** Mutants that neither the exploration nor a table's own test catches, and why that is no hole. What is missed and not here is one. */
import type { Mutant } from './mutants.ts';

/** By table, function and condition; where only one of the two changes is meant, that as well. */
const HARMLESS: Readonly<Record<string, string>> = {
  "unregisterTable.whenUnanswered: f.outOfTime === 'patience' (never)": 'a CI server that stays away for ever is not in the world: asked again, it answers; the rows of the table are tested one by one',
  "unregisterTable.whenUnanswered: f.ownSignal === 'busy' (never)": "the world's jobs survive the removal of their registration, which nobody says of GitHub's",
  "unregisterTable.stopOrAwait: f.outOfTime === 'terminated' (never)": 'no pod of the world outlives its grace; the rows of the table are tested one by one',
};

const keyOf = ({ table, where, condition }: Pick<Mutant, 'table' | 'where' | 'condition'>): string => `${table}.${where}: ${condition}`;

export function whyHarmless(mutant: Pick<Mutant, 'table' | 'where' | 'condition' | 'change'>): string | undefined {
  return HARMLESS[`${keyOf(mutant)} (${mutant.change})`] ?? HARMLESS[keyOf(mutant)];
}
