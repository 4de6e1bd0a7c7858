/** Where the runs of a job are reported: that part of its input that its group goes by. All of it is checked by the job. */
import { z } from 'zod';
import type { Scope } from '../domain/ciServer.ts';
import { DEFAULT_CREDENTIAL, readInput, scopeFields, toScope, type Parsed } from './fields.ts';
import { jobSchema } from './job.ts';

export interface ReportSpec {
  readonly credential: string;
  /** The repository. */
  readonly scope: Scope;
  /** Of the job. */
  readonly name: string;
}

const { name, credential } = jobSchema.shape;
const reported = z.object({ name, credential, repository: scopeFields.repository.unwrap() });

/** @param raw - the input of a job */
export function parseJobReport(raw: unknown): Parsed<ReportSpec> {
  const parsed = readInput(reported, raw);
  if (!parsed.ok) return parsed;
  const { credential: named = DEFAULT_CREDENTIAL, repository, ...job } = parsed.spec;
  return { ok: true, spec: { ...job, credential: named, scope: toScope({ repository }) } };
}
