/**
 * Fields that the bodies of all deliveries have in common. Their content is untrusted, even with a
 * valid signature.
 */
import { z } from 'zod';
import { isTime } from '../../../core/domain/isTime.ts';

/**
 * Returns a text of bounded length. Authors of a repository can write texts of any length, and they
 * become part of histories.
 */
export const truncated = (max: number) => z.string().transform((value) => value.slice(0, max));

/**
 * Time (ms since the epoch). GitHub writes ISO 8601, or seconds since the epoch. A time that is not
 * set is null, absent, or (Gitea) in the year 1970.
 */
export const time = z
  .unknown()
  .transform((value) => {
    let ms = Number.NaN;
    if (typeof value === 'string') ms = Date.parse(value);
    if (typeof value === 'number') ms = value * 1_000;
    return ms > 0 && isTime(ms) ? ms : undefined;
  })
  .optional();

/** Name of a repository as `owner/repo`. */
export const repositoryField = z.object({
  full_name: z.string().regex(/^[\w.-]{1,100}\/[\w.-]{1,100}$/),
});
