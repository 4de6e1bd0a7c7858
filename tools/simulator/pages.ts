import type { Call } from './rest.ts';

/**
 * Returns one page of a list with GitHub's pagination: `page` from 1, `per_page` 30 by default and
 * 100 at most, links in the `Link` header.
 */
export function paginate<T>(
  all: readonly T[],
  call: Call,
): { items: T[]; headers: Record<string, string> } {
  const perPage = clamp(call.query['per_page'], 30, 100);
  const page = clamp(call.query['page'], 1, Number.MAX_SAFE_INTEGER);
  const last = Math.max(1, Math.ceil(all.length / perPage));
  const links: string[] = [];
  const link = (target: number, rel: string): void => {
    const url = new URL(call.url);
    url.searchParams.set('page', String(target));
    links.push(`<${url.toString()}>; rel="${rel}"`);
  };
  if (page > 1) link(page - 1, 'prev');
  if (page < last) {
    link(page + 1, 'next');
    link(last, 'last');
  }
  if (page > 1) link(1, 'first');
  return {
    items: all.slice((page - 1) * perPage, page * perPage),
    headers: links.length > 0 ? { link: links.join(', ') } : {},
  };
}

function clamp(text: string | undefined, fallback: number, max: number): number {
  const value = Number(text);
  return Number.isInteger(value) && value > 0 ? Math.min(value, max) : fallback;
}
