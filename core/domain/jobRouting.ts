/** Which set a job is for. Pure: every replica sends every event of a job to the same set, and a look at the CI server finds it there, too. */
import { labelsMatch, MAX_LABELS } from './labels.ts';
import { jobKey } from './ciJobState.ts';
import type { JobEvent, ScopeKind, SetRoutingInfo } from '../contract/index.ts';
import type { CiServerKind } from './ciServerKind.ts';

/** A running set, as far as the choice needs it. Its labels are normalized. */
export interface RoutableSet {
  readonly workflowId: string;
  readonly routing: SetRoutingInfo;
}

/** A job, as far as the choice needs it. Its labels are normalized. */
export type RoutedJob = Pick<JobEvent, 'jobId' | 'runAttempt' | 'repository' | 'labels'>;

/** Where a job comes from. */
export interface JobOrigin {
  readonly ciServer: CiServerKind;
  /** Slug of the enterprise that the repository's owner belongs to. */
  readonly enterprise?: string;
}

/** Sets that cover the same: of the same scope, labels and runner group. */
interface RoutingGroup<T> {
  readonly rank: number;
  readonly labels: ReadonlySet<string>;
  readonly group: string;
  /** Whether jobs without labels are for them. */
  readonly groupJobs: boolean;
  readonly members: RoutingMember<T>[];
}

interface RoutingMember<T> {
  readonly set: T;
  /** Two hashes of its id: sets that have one in common must not be one to all jobs. */
  readonly hashes: readonly [number, number];
}

const NARROWEST_FIRST: readonly ScopeKind[] = ['repository', 'organization', 'enterprise'];

/**
 * The one set that has to serve a job: its scope holds the repository, and its labels cover the job's. Of several the one with the
 * fewest labels that the job does not ask for (a plain job must not occupy the runner with a GPU), then with the narrowest scope, then of the
 * runner group with the lowest id (none named: the lowest of all). A job without labels asks for a runner group, or for a runner of the CI server's
 * own: it is only for sets that say `groupJobs`. Those that are equal in all that share the jobs, by a hash of the job and the set (rendezvous hashing,
 * https://en.wikipedia.org/wiki/Rendezvous_hashing): each has its part of them, and a set that comes or goes moves no job between the others.
 *
 * The job's own runner group decides nothing: it may be known only once a runner has the job, and then it would be another choice than before.
 */
export class JobRouter<T extends RoutableSet> {
  readonly #groups = new Map<string, Map<string, RoutingGroup<T>>>();

  constructor(sets: readonly T[]) {
    for (const set of sets) this.#add(set);
  }

  homeOf(job: RoutedJob, { ciServer, enterprise }: JobOrigin): T | undefined {
    if (job.labels.length > MAX_LABELS) return undefined;
    const scopes = {
      repository: job.repository,
      organization: job.repository.split('/')[0],
      enterprise,
    };
    let best: RoutingGroup<T>[] = [];
    for (const scopeKind of NARROWEST_FIRST) {
      const scope = scopeKey({ ciServer, scopeKind, scope: scopes[scopeKind] ?? '' });
      for (const kind of this.#groups.get(scope)?.values() ?? []) {
        if (!mayTake(kind, job)) continue;
        const better = best[0] === undefined ? -1 : compare(kind, best[0]);
        if (better < 0) best = [kind];
        else if (better === 0) best.push(kind);
      }
    }
    // Thousands may be equal, and each event of a job asks: they are copied only where they must be.
    return firstOf(
      best.length === 1 ? (best[0]?.members ?? []) : best.flatMap(({ members }) => members),
      job,
    );
  }

  #add(set: T): void {
    const { ciServer, scopeKind, labels, groupJobs } = set.routing;
    if (ciServer === undefined) return;
    const covered = new Set(labels);
    const scoped = scopeKey(set.routing);
    const kinds = this.#groups.get(scoped) ?? new Map<string, RoutingGroup<T>>();
    this.#groups.set(scoped, kinds);
    const group = groupKey(set.routing);
    const key = `${group} ${groupJobs === true} ${JSON.stringify([...covered].toSorted())}`;
    const kind = kinds.get(key) ?? {
      rank: NARROWEST_FIRST.indexOf(scopeKind),
      labels: covered,
      group,
      groupJobs: groupJobs === true,
      members: [],
    };
    kinds.set(key, kind);
    kind.members.push(memberOf(set));
  }
}

/**
 * The sets to which one passes the jobs that it cannot serve: they have the same labels, runner group and `groupJobs`, and the same scope, or the organization that
 * the repository is in. So each covers whatever the other does; one with more labels does too, and is left to the jobs that need it.
 */
export class RerouteTargets<T extends RoutableSet> {
  readonly #near: RoutingMember<T>[];
  readonly #wider: RoutingMember<T>[];
  readonly #ids: string[];

  constructor(self: RoutableSet, sets: readonly T[]) {
    const { routing } = self;
    const others = sets.filter(
      (set) => set.workflowId !== self.workflowId && haveSameRouting(set.routing, routing),
    );
    const inScope = (scopeKind: ScopeKind, scope: string): T[] => {
      const wanted = scopeKey({ ...routing, scopeKind, scope });
      return others.filter((set) => scopeKey(set.routing) === wanted);
    };
    const near = inScope(routing.scopeKind, routing.scope);
    const wider =
      routing.scopeKind === 'repository'
        ? inScope('organization', routing.scope.split('/')[0] ?? '')
        : [];
    this.#ids = [...near, ...wider].map(({ workflowId }) => workflowId);
    // Two that end would pass a job to and fro.
    const staying = (sets: readonly T[]): RoutingMember<T>[] =>
      sets.filter((set) => set.routing.draining !== true).map(memberOf);
    this.#near = staying(near);
    this.#wider = staying(wider);
  }

  get size(): number {
    return this.#near.length + this.#wider.length;
  }

  /** Workflow ids of all that may have a job, those that end included. */
  ids(): readonly string[] {
    return this.#ids;
  }

  /** The next set for a job: by its hash, so that what one cannot serve is spread over all others. `undefined`: none has room. @param evenFull - better one without room than none */
  next(job: Pick<RoutedJob, 'jobId' | 'runAttempt'>, evenFull = false): T | undefined {
    const open = (members: RoutingMember<T>[]): RoutingMember<T>[] =>
      members.filter(({ set }) => set.routing.atCapacity !== true);
    return (
      firstOf(open(this.#near), job) ??
      firstOf(open(this.#wider), job) ??
      (evenFull ? (firstOf(this.#near, job) ?? firstOf(this.#wider, job)) : undefined)
    );
  }
}

function haveSameRouting(one: SetRoutingInfo, other: SetRoutingInfo): boolean {
  const [labels, others] = [new Set(one.labels), new Set(other.labels)];
  return (
    labels.size === others.size &&
    [...labels].every((label) => others.has(label)) &&
    groupKey(one) === groupKey(other) &&
    one.groupJobs === other.groupJobs
  );
}

const mayTake = <T>({ labels, groupJobs }: RoutingGroup<T>, job: RoutedJob): boolean =>
  job.labels.length === 0 ? groupJobs : labelsMatch(labels, job.labels);

const scopeKey = ({
  ciServer,
  scopeKind,
  scope,
}: Pick<SetRoutingInfo, 'ciServer' | 'scopeKind' | 'scope'>): string =>
  `${ciServer ?? ''} ${scopeKind} ${scope.toLowerCase()}`;

/** Sorts sets without a group first, then by ID, then by name. */
function groupKey({ group }: SetRoutingInfo): string {
  if (group === undefined) return '';
  return 'id' in group ? `id ${group.id}` : `name ${group.name}`;
}

/** Both cover the job: who has fewer labels has fewer that it does not ask for. */
const compare = <T>(a: RoutingGroup<T>, b: RoutingGroup<T>): number =>
  a.labels.size - b.labels.size ||
  a.rank - b.rank ||
  a.group.localeCompare(b.group, 'en', { numeric: true });

const memberOf = <T extends RoutableSet>(set: T): RoutingMember<T> => ({
  set,
  hashes: [hashOf(set.workflowId, 0x811c9dc5), hashOf(set.workflowId, 0x9747b28c)],
});

/** The member with the highest score for this job (rendezvous hashing). */
function firstOf<T extends RoutableSet>(
  members: readonly RoutingMember<T>[],
  job: Pick<RoutedJob, 'jobId' | 'runAttempt'>,
): T | undefined {
  const [lone] = members;
  if (members.length < 2) return lone?.set;
  const hash = hashOf(jobKey(job), 0x811c9dc5);
  let first: { readonly set: T; readonly score: number } | undefined;
  for (const {
    set,
    hashes: [one, other],
  } of members) {
    const score = mixed((mixed((hash ^ one) | 0) + other) | 0);
    if (
      first === undefined ||
      score > first.score ||
      (score === first.score && set.workflowId < first.set.workflowId)
    )
      first = { set, score };
  }
  return first?.set;
}

/** FNV-1a, 32 bits (http://www.isthe.com/chongo/tech/comp/fnv/), with its bits mixed: ids that differ in their last digit must not be neighbours. */
function hashOf(text: string, seed: number): number {
  let hash = seed;
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  return mixed(hash);
}

/** MurmurHash3's finalizer (https://github.com/aappleby/smhasher/wiki/MurmurHash3). @returns 0 to 2^32 - 1 */
function mixed(hash: number): number {
  let bits = hash;
  bits = Math.imul(bits ^ (bits >>> 16), 0x85ebca6b);
  bits = Math.imul(bits ^ (bits >>> 13), 0xc2b2ae35);
  return (bits ^ (bits >>> 16)) >>> 0;
}
