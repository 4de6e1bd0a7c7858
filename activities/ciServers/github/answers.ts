import { z } from 'zod';
import type { CiRunner } from '../../ports.ts';

/** The fields of GitHub's answers that are used; others may come and go. */
export const runnerAnswer = z
  .object({
    id: z.number().int(),
    name: z.string(),
    status: z.string(),
    busy: z.boolean(),
    labels: z.array(z.object({ name: z.string() })),
  })
  .transform(({ id, name, status, busy, labels }): CiRunner => ({ id, name, online: status === 'online', busy, labels: labels.map((label) => label.name) }));

export const runnerListAnswer = z.object({ total_count: z.number().int(), runners: z.array(runnerAnswer) });

export const jitAnswer = z.object({ runner: z.object({ id: z.number().int(), name: z.string() }), encoded_jit_config: z.string().min(1) });

export const registrationTokenAnswer = z.object({ token: z.string().min(1), expires_at: z.string() });

export const runnerGroupAnswer = z.object({ id: z.number().int(), name: z.string().min(1) });
