/** What a delivery about a push or a pull request says, for the declared jobs of the repository. */
import { z } from 'zod';
import type { RepositoryChange } from '../../core/contract/index.ts';
import { defined } from '../../core/domain/omitUndefined.ts';
import { REF } from '../../core/domain/gitNames.ts';
import { repositoryField, STALE_AFTER_MS, time } from './deliveryFields.ts';

export type ChangeDelivery =
  | { readonly kind: 'change'; readonly news: ChangeNews }
  | { readonly kind: 'ignored'; readonly why: 'other_event' | 'other_action' }
  | { readonly kind: 'stale' | 'malformed' };

export interface ChangeNews {
  /** `owner/repo`. */
  readonly repository: string;
  readonly change: RepositoryChange;
}

const commitId = z.string().regex(/^(?:[0-9a-f]{40}|[0-9a-f]{64})$/);
const refName = z.string().regex(REF);
const files = z.array(z.string()).nullish().catch(undefined);

/** https://docs.github.com/en/webhooks/webhook-events-and-payloads#push */
const pushEvent = z.object({
  ref: refName,
  after: commitId,
  deleted: z.boolean().nullish(),
  forced: z.boolean().nullish(),
  commits: z
    .array(z.object({ added: files, removed: files, modified: files }))
    .nullish()
    .catch(undefined),
  repository: repositoryField.extend({ pushed_at: time }),
});

/** https://docs.github.com/en/webhooks/webhook-events-and-payloads#pull_request */
const pullRequestEvent = z.object({
  action: z.string(),
  pull_request: z.object({
    number: z.int().positive(),
    updated_at: time,
    author_association: z.string().nullish(),
    head: z.object({ sha: commitId, repo: z.object({ full_name: z.string() }).nullish() }),
    base: z.object({ ref: refName }),
  }),
  repository: repositoryField,
});

/** As GitHub Actions by default: https://docs.github.com/en/actions/reference/workflows-and-actions/events-that-trigger-workflows#pull_request */
const ACTIONS: ReadonlySet<string> = new Set(['opened', 'synchronize', 'reopened']);
/** Those who belong to a repository: https://docs.github.com/en/graphql/reference/enums#commentauthorassociation */
const INSIDERS: ReadonlySet<string> = new Set(['OWNER', 'MEMBER', 'COLLABORATOR']);

/** GitHub tells no more commits of a push. */
const MOST_COMMITS = 2_048;
/** Of all paths together, in characters: a signal has an end. */
const MOST_PATHS = 131_072;

/** @param nowMs - stands for a time that the event should have and has not */
export function readChangeDelivery(
  eventName: string,
  body: unknown,
  nowMs: number,
): ChangeDelivery {
  if (eventName === 'push') return readPush(body, nowMs);
  if (eventName === 'pull_request') return readPullRequest(body, nowMs);
  return { kind: 'ignored', why: 'other_event' };
}

/** What is pushed has been let in: who pushes may write. A branch or tag that is deleted has nothing to run. */
function readPush(body: unknown, nowMs: number): ChangeDelivery {
  const parsed = pushEvent.safeParse(body);
  if (!parsed.success) return { kind: 'malformed' };
  const { ref, after: commit, deleted, repository } = parsed.data;
  if (deleted === true || /^0+$/.test(commit)) return { kind: 'ignored', why: 'other_action' };
  const [, branch] = /^refs\/heads\/(.+)$/.exec(ref) ?? [];
  return changed(repository.full_name, repository.pushed_at, nowMs, {
    event: 'push',
    commit,
    ref,
    ...defined({ branch, paths: pathsOf(parsed.data) }),
  });
}

/** Drafts are pull requests, too. From a fork, or by somebody who does not belong to the repository, it is an outsider's. */
function readPullRequest(body: unknown, nowMs: number): ChangeDelivery {
  const parsed = pullRequestEvent.safeParse(body);
  if (!parsed.success) return { kind: 'malformed' };
  const { action, pull_request: asked, repository } = parsed.data;
  if (!ACTIONS.has(action)) return { kind: 'ignored', why: 'other_action' };
  const { number, updated_at: at, author_association: association, head, base } = asked;
  const trusted = head.repo?.full_name === repository.full_name && INSIDERS.has(association ?? '');
  return changed(repository.full_name, at, nowMs, {
    event: 'pull_request',
    commit: head.sha,
    ref: `refs/pull/${number}/merge`,
    branch: base.ref,
    pullRequest: number,
    ...(trusted ? { trusted } : {}),
  });
}

function changed(
  repository: string,
  atMs: number | undefined,
  nowMs: number,
  change: Omit<RepositoryChange, 'at'>,
): ChangeDelivery {
  if (atMs !== undefined && nowMs - atMs > STALE_AFTER_MS) return { kind: 'stale' };
  return {
    kind: 'change',
    news: { repository, change: { ...change, at: new Date(atMs ?? nowMs).toISOString() } },
  };
}

/** Of a push that is not just some commits more, these do not say what is different. */
function pathsOf({ commits, forced }: z.output<typeof pushEvent>): string[] | undefined {
  if (!commits || forced === true || commits.length === 0 || commits.length >= MOST_COMMITS)
    return undefined;
  const lists = commits.flatMap(({ added, removed, modified }) => [added, removed, modified]);
  if (lists.some((list) => !list)) return undefined;
  const paths = [...new Set(lists.flatMap((list) => list ?? []))];
  return paths.reduce((sum, path) => sum + path.length, 0) > MOST_PATHS ? undefined : paths;
}
