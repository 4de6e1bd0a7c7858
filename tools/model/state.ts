/**
 * A state of the model: pod, job and registration as they are, messages in flight, and how far the
 * workflow has come. Each field has few values, which keeps the number of states small. Time is not
 * counted; fields such as `podAge` record that an interval has passed.
 */

/**
 * The fields, each with its values; the first one is its initial value. What the workflow knows and
 * has decided is not here: a state refers to it by number (see workflowModel.ts).
 */
export const FIELDS = {
  /** Kind of runner. */
  setup: [
    'ephemeral',
    'ephemeral, no supervisor',
    'ephemeral, replace',
    'static',
    'static, no supervisor',
    'command',
    'checkpointing command',
  ],
  // The pod.
  pod: ['none', 'pending', 'running', 'ended', 'gone'],
  /** Why a pending pod does not start. */
  problem: ['none', 'unschedulable', 'image', 'image for 30 s', 'image name'],
  /** Who deleted or evicted the pod, which is then terminating. */
  deletedBy: ['none', 'holdfast', 'user', 'eviction'],
  node: ['ready', 'unreachable'],
  started: [false, true],
  exit: ['unknown', '0', '1', '137, out of memory', '143'],
  /** Whether the supervisor wrote its termination message. */
  exitRecorded: [false, true],
  /** Whether the container got SIGTERM before it ended, and ended because of it. */
  interrupted: [false, true],
  /** Whether the runner process is registered and listens for jobs. */
  online: [false, true],
  /** The latest job. An ephemeral runner has one, a static one two. */
  job: ['none', 'A running', 'A done', 'A lost', 'B running', 'B done', 'B lost'],
  /** Conclusion of the latest completed job. */
  conclusion: ['success', 'failure'],
  /** Whether the readiness probe fails although no job runs. */
  probeMissed: [false, true],
  /** Result of the probes as the kubelet has published it. */
  published: ['down', 'ready', 'busy'],
  /** Time since the pod's creation: `podUnscheduled` is 5 m, `podPending` is 10 m. */
  podAge: ['new', '5 m', '10 m'],
  /** Whether more than 10 m (`registration`) have passed since the container's start. */
  pastRegistrationDeadline: [false, true],
  // The CI server.
  registration: ['none', 'registered', 'removed'],
  ciBusy: [false, true],
  /** Whether the job started less than a minute ago: a DELETE may still return 204. */
  jobJustStarted: [false, true],
  /** Whether the runner registered less than a minute ago: lists may not contain it. */
  justRegistered: [false, true],
  // The watcher of the worker.
  /** Result of the probes as the watcher last saw it. */
  watcherView: ['nothing', 'down', 'ready', 'busy'],
  /** The `podState` signal in flight. */
  signal: ['none', 'idle', 'busy'],
  // The workflow.
  /** The activity or condition that the workflow waits for. */
  stage: [
    'provisioning',
    'finding leftovers',
    'starting',
    'checking online',
    'serving',
    'removing registration',
    'deleting pod',
    'refreshing pod',
    'waiting',
    'tearing down',
    'awaiting deletion',
    'replacing',
    'completed',
  ],
  /** The last object that the provisioning created. */
  created: ['nothing', 'registration', 'Secret', 'pod'],
  /** Whether a worker continues a provisioning that has timed out or was cancelled. */
  staleProvisioning: [false, true],
  /** Whether the workflow has cancelled the activity that removes the registration. */
  cancellingRemoval: [false, true],
  /** Whether an earlier attempt of the same removal may have succeeded. */
  removalRetried: [false, true],
  failure: [
    'none',
    'provisioning',
    'unschedulable',
    'pending_timeout',
    'image_pull',
    'never_registered',
  ],
  /** Whether the workflow has requested the deletion of pod and Secret. */
  deleteRequested: [false, true],
  /** Whether the registration was handed off to the sweep. */
  handedOff: [false, true],
  /** The job that ran when the workflow set the job deadline. */
  deadlineJob: ['none', 'A', 'B'],
  /** Whether the kubelet published the probes later than the workflow waits for them. */
  probesLate: [false, true],
  /** Whether a job has had the maximum time of a job. */
  jobTimeUsed: [false, true],
} as const;

type Fields = { readonly [Name in keyof typeof FIELDS]: (typeof FIELDS)[Name][number] };

/** A state of the model. */
export interface State extends Fields {
  /** Number of what the workflow knows (see workflowModel.ts). */
  readonly knowledge: number;
  /** Number of the progress of the unregistration. */
  readonly progress: number;
  /** Number of the current decision of the unregistration. */
  readonly decision: number;
  /** Number of the verdict. */
  readonly verdict: number;
}

/** A kind of runner. */
export type Setup = State['setup'];

const NAMES = Object.keys(FIELDS) as readonly (keyof Fields)[];
const NUMBERS = ['knowledge', 'progress', 'decision', 'verdict'] as const;
const BYTE = 256;
/** The character that stands for each value of each field. */
const CHARACTERS = NAMES.map(
  (name) =>
    new Map<unknown, string>(FIELDS[name].map((value, code) => [value, String.fromCharCode(code)])),
);

/** Returns a short key of the state: one character for each field, two for each number. */
export function encode(state: State): string {
  let key = '';
  for (let index = 0; index < NAMES.length; index++)
    key += CHARACTERS[index]?.get(state[NAMES[index] as keyof Fields]);
  for (const name of NUMBERS)
    key += String.fromCharCode(state[name] % BYTE, Math.floor(state[name] / BYTE));
  return key;
}

/** Template of all states. Copies of one object share its hidden class, which is much faster. */
const TEMPLATE = {
  ...(Object.fromEntries(NAMES.map((name) => [name, FIELDS[name][0]])) as unknown as Fields),
  knowledge: 0,
  progress: 0,
  decision: 0,
  verdict: 0,
};

/** Returns the state of a key. The inverse of {@link encode}. */
export function decode(key: string): State {
  const state: Record<string, unknown> = { ...TEMPLATE };
  for (let index = 0; index < NAMES.length; index++) {
    const name = NAMES[index] as keyof Fields;
    state[name] = FIELDS[name][key.charCodeAt(index)];
  }
  NUMBERS.forEach(
    (name, index) =>
      (state[name] =
        key.charCodeAt(NAMES.length + 2 * index) +
        BYTE * key.charCodeAt(NAMES.length + 2 * index + 1)),
  );
  return state as unknown as State;
}

/** Returns the state of a workflow that has just been admitted. */
export function initialState(setup: Setup): State {
  return { ...TEMPLATE, setup };
}

/** Whether the pod has no supervisor, and thus neither probes nor a termination message. */
export const lacksSupervisor = ({ setup }: State): boolean =>
  setup === 'ephemeral, no supervisor' || setup === 'static, no supervisor';

/** Whether the runner takes several jobs. */
export const isStatic = ({ setup }: State): boolean =>
  setup === 'static' || setup === 'static, no supervisor';

/** Whether the runner runs a command, without a CI server. */
export const isCommand = ({ setup }: State): boolean =>
  setup === 'command' || setup === 'checkpointing command';

/** Whether the runner takes one job. */
export const isEphemeral = (state: State): boolean => !isStatic(state) && !isCommand(state);

/** Whether a job runs. */
export const hasJob = ({ job }: State): boolean => job === 'A running' || job === 'B running';

/** Whether the latest job ended with its runner. */
export const isLost = ({ job }: State): boolean => job === 'A lost' || job === 'B lost';

/** Whether the latest job has completed. */
export const isDone = ({ job }: State): boolean => job === 'A done' || job === 'B done';
