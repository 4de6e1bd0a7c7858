/**
 * Assigns jobs to sets. Pure: every replica sends every event of a job to the same set, and a check
 * of the CI server assigns the job to it too.
 */
import { labelsMatch, MAX_LABELS } from './labels.ts';
import { jobKey } from './ciJobState.ts';
import type { JobEvent, ScopeKind, SetRoutingInfo } from '../contract/index.ts';
import { type CiServerKind, ENTERPRISE_OF_SERVER } from './ciServerKind.ts';

/** A running set, with the fields that routing needs. Its labels are normalized. */
export interface RoutableSet {
  readonly workflowId: string;
  readonly routing: SetRoutingInfo;
}

/** A job, with the fields that routing needs. Its labels are normalized. */
export type RoutedJob = Pick<JobEvent, 'jobId' | 'runAttempt' | 'repository' | 'labels'>;

/** Origin of a job. */
export interface JobOrigin {
  readonly ciServer: CiServerKind;
  /** Slug of the enterprise to which the owner of the repository belongs. */
  readonly enterprise?: string;
}

/** Sets with the same scope, labels and runner group. */
interface RoutingGroup<T> {
  readonly rank: number;
  readonly labels: ReadonlySet<string>;
  readonly group: string;
  /** Whether the sets take jobs without labels. */
  readonly groupJobs: boolean;
  readonly members: RoutingMember<T>[];
}

interface RoutingMember<T> {
  readonly set: T;
  /**
   * Two hashes of the workflow ID. With only one, two sets with the same hash would have equal
   * scores for every job, and one of them would get no job.
   */
  readonly hashes: readonly [number, number];
}

const NARROWEST_FIRST: readonly ScopeKind[] = ['repository', 'organization', 'enterprise'];

/**
 * Assigns each job to one set. The scope of the set must contain the repository, and its labels
 * must include those of the job. These rules choose between several sets, in this order:
 *
 * 1. The fewest labels that the job does not request: a plain job must not occupy a GPU.
 * 2. The narrowest scope.
 * 3. The lowest ID of the runner group. Sets without a group come first.
 *
 * A job without labels requests a runner group, or a runner of the CI server itself, so only sets
 * with `groupJobs` take it. Sets that are equal by all these rules share the jobs by a hash of job
 * and set (rendezvous hashing, https://en.wikipedia.org/wiki/Rendezvous_hashing). Each gets its
 * share, and a set that is added or removed moves no job between the others.
 *
 * The runner group of the job is not used, because it may be known only after a runner has taken
 * the job. It would then change the assignment.
 */
export class JobRouter<T extends RoutableSet> {
  readonly #groups = new Map<string, Map<string, RoutingGroup<T>>>();

  constructor(sets: readonly T[]) {
    for (const set of sets) this.#add(set);
  }

  /** Returns the set that serves a job, or `undefined` if there is none. */
  setFor(job: RoutedJob, { ciServer, enterprise }: JobOrigin): T | undefined {
    if (job.labels.length > MAX_LABELS) return undefined;
    const scopes = {
      repository: job.repository,
      organization: job.repository.split('/')[0],
      enterprise: ENTERPRISE_OF_SERVER[ciServer] ?? enterprise,
    };
    let best: RoutingGroup<T>[] = [];
    for (const scopeKind of NARROWEST_FIRST) {
      const scope = scopeKey({ ciServer, scopeKind, scope: scopes[scopeKind] ?? '' });
      for (const candidate of this.#groups.get(scope)?.values() ?? []) {
        if (!mayTake(candidate, job)) continue;
        const order = best[0] === undefined ? -1 : compare(candidate, best[0]);
        if (order < 0) best = [candidate];
        else if (order === 0) best.push(candidate);
      }
    }
    // Thousands of sets may be equal, and this runs for each event of a job, so the members are
    // copied only if necessary.
    return highestScoreOf(
      best.length === 1 ? (best[0]?.members ?? []) : best.flatMap(({ members }) => members),
      job,
    );
  }

  #add(set: T): void {
    const { ciServer, scopeKind, labels, groupJobs } = set.routing;
    if (ciServer === undefined) return;
    const uniqueLabels = new Set(labels);
    const scope = scopeKey(set.routing);
    const inScope = this.#groups.get(scope) ?? new Map<string, RoutingGroup<T>>();
    this.#groups.set(scope, inScope);
    const group = groupKey(set.routing);
    const key = `${group} ${groupJobs === true} ${JSON.stringify([...uniqueLabels].toSorted())}`;
    const routingGroup = inScope.get(key) ?? {
      rank: NARROWEST_FIRST.indexOf(scopeKind),
      labels: uniqueLabels,
      group,
      groupJobs: groupJobs === true,
      members: [],
    };
    inScope.set(key, routingGroup);
    routingGroup.members.push(memberOf(set));
  }
}

/**
 * The sets to which a set can reroute jobs that it cannot serve. They have the same labels, runner
 * group and `groupJobs`, and the same scope or the organization that contains the repository. So
 * each can serve every job of the set. A set with more labels could too, but is reserved for the
 * jobs that request them.
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
    // Two draining sets would reroute a job back and forth.
    const staying = (sets: readonly T[]): RoutingMember<T>[] =>
      sets.filter((set) => set.routing.draining !== true).map(memberOf);
    this.#near = staying(near);
    this.#wider = staying(wider);
  }

  /** Number of sets that are not draining, with or without free capacity. */
  get size(): number {
    return this.#near.length + this.#wider.length;
  }

  /** Returns the workflow IDs of all sets that may have received a job, including draining ones. */
  ids(): readonly string[] {
    return this.#ids;
  }

  /**
   * Returns the next set for a job, by its hash, so that the jobs that one set cannot serve are
   * spread over all others.
   * @param options.includeFull - whether to return a set at capacity if no set has free capacity
   * @returns `undefined` if there is no such set
   */
  next(
    job: Pick<RoutedJob, 'jobId' | 'runAttempt'>,
    { includeFull = false }: { readonly includeFull?: boolean } = {},
  ): T | undefined {
    const open = (members: RoutingMember<T>[]): RoutingMember<T>[] =>
      members.filter(({ set }) => set.routing.atCapacity !== true);
    return (
      highestScoreOf(open(this.#near), job) ??
      highestScoreOf(open(this.#wider), job) ??
      (includeFull
        ? (highestScoreOf(this.#near, job) ?? highestScoreOf(this.#wider, job))
        : undefined)
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

/** Returns a key that sorts sets without a group first, then by ID, then by name. */
function groupKey({ group }: SetRoutingInfo): string {
  if (group === undefined) return '';
  return 'id' in group ? `id ${group.id}` : `name ${group.name}`;
}

/**
 * Compares two groups that can both take the job. Both have all labels of the job, so the group
 * with fewer labels has fewer that the job does not request.
 */
const compare = <T>(a: RoutingGroup<T>, b: RoutingGroup<T>): number =>
  a.labels.size - b.labels.size ||
  a.rank - b.rank ||
  a.group.localeCompare(b.group, 'en', { numeric: true });

const memberOf = <T extends RoutableSet>(set: T): RoutingMember<T> => ({
  set,
  hashes: [hashOf(set.workflowId, 0x811c9dc5), hashOf(set.workflowId, 0x9747b28c)],
});

/** Returns the set of the member with the highest score for this job (rendezvous hashing). */
function highestScoreOf<T extends RoutableSet>(
  members: readonly RoutingMember<T>[],
  job: Pick<RoutedJob, 'jobId' | 'runAttempt'>,
): T | undefined {
  const [only] = members;
  if (members.length < 2) return only?.set;
  const hash = hashOf(jobKey(job), 0x811c9dc5);
  let best: { readonly set: T; readonly score: number } | undefined;
  for (const {
    set,
    hashes: [one, other],
  } of members) {
    const score = mix((mix((hash ^ one) | 0) + other) | 0);
    if (
      best === undefined ||
      score > best.score ||
      (score === best.score && set.workflowId < best.set.workflowId)
    )
      best = { set, score };
  }
  return best?.set;
}

/**
 * Returns a hash by FNV-1a with 32 bits (http://www.isthe.com/chongo/tech/comp/fnv/). Its bits are
 * mixed, so that IDs that differ in their last digit do not get similar hashes.
 */
function hashOf(text: string, seed: number): number {
  let hash = seed;
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  return mix(hash);
}

/**
 * Mixes the bits with the finalizer of MurmurHash3
 * (https://github.com/aappleby/smhasher/wiki/MurmurHash3).
 * @returns 0 to 2^32 - 1
 */
function mix(hash: number): number {
  let bits = hash;
  bits = Math.imul(bits ^ (bits >>> 16), 0x85ebca6b);
  bits = Math.imul(bits ^ (bits >>> 13), 0xc2b2ae35);
  return (bits ^ (bits >>> 16)) >>> 0;
}
