/** The decision tables and reducers of the workflow, which a mutation run replaces. */
import * as cancellation from '../../core/domain/cancellation.ts';
import * as onlineDecision from '../../workflows/runner/startupDecision.ts';
import * as unregisterFacts from '../../workflows/runner/unregisterFacts.ts';
import * as unregisterTable from '../../workflows/runner/unregisterTable.ts';
import * as verdicts from './verdictTable.ts';

/** The modules. */
export const TABLES = { unregisterTable, unregisterFacts, onlineDecision, verdicts, cancellation };

/** The modules, or mutants of them. */
export type Tables = typeof TABLES;
