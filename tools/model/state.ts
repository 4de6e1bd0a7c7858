/**
 * One moment of the model: the truth about pod, job and registration, what is on its way, and how far the life has come. Few values for each
 * field, so that there are few moments; time is not counted, but for what has become old.
 */

/** Every field with the values that it may have. What a life believes and has heard is kept aside (mind.ts) and referred to by number. */
export const FIELDS = {
  /** What kind of runner it is. */
  setup: [
    'ephemeral',
    'ephemeral, silent',
    'ephemeral, to be replaced',
    'static',
    'static, silent',
    'command',
    'checkpointing command',
  ],
  // The pod, as the API server has it, and what is in it in truth.
  pod: ['none', 'pending', 'running', 'ended', 'gone'],
  problem: ['none', 'unschedulable', 'image', 'image for 30 s', 'image name'],
  /** Who asked for its end. */
  told: ['no', 'us', 'deleted', 'evicted'],
  node: ['well', 'silent'],
  started: [false, true],
  exit: ['unknown', '0', '1', '137, out of memory', '143'],
  /** The supervisor could write down how it ended. */
  recorded: [false, true],
  /** It was told before it ended, and ended for that. */
  interrupted: [false, true],
  /** The runner process is online: registered and listening. */
  up: [false, true],
  /** The last job. An ephemeral runner has one, a static one two. */
  job: ['none', 'A runs', 'A done', 'A lost', 'B runs', 'B done', 'B lost'],
  /** How the last job that is over ended. */
  conclusion: ['success', 'failure'],
  /** Its readiness probe fails although no job runs. */
  missed: [false, true],
  /** What the kubelet has published of the probes. */
  shown: ['down', 'ready', 'busy'],
  /** 5 m (`podUnscheduled`), 10 m (`podPending`) since the pod's creation. */
  age: ['new', '5 m', '10 m'],
  /** 10 m (`registration`) since the container's start. */
  old: [false, true],
  // The CI server.
  registration: ['none', 'there', 'removed'],
  ciBusy: [false, true],
  /** Less than a minute since its job started: a DELETE may be answered 204. */
  young: [false, true],
  /** Less than a minute since it registered: lists may not have it. */
  fresh: [false, true],
  // What is on its way, and what the workers know.
  /** What the watcher last saw of the probes. */
  watched: ['nothing', 'down', 'ready', 'busy'],
  /** The `podState` signal that is on its way. */
  signal: ['none', 'idle', 'busy'],
  // The life.
  at: [
    'provisioning',
    'finding',
    'coming up',
    'looking up',
    'serving',
    'removing',
    'stopping',
    'looking',
    'waiting',
    'tearing down',
    'awaiting gone',
    'replacing',
    'over',
  ],
  /** What the provisioning has made. */
  made: ['nothing', 'registration', 'Secret', 'pod'],
  /** A worker that was given up goes on with the provisioning. */
  cutOff: [false, true],
  /** The removal is being called off. */
  callingOff: [false, true],
  /** An earlier try of the same removal may have done it. */
  retried: [false, true],
  failure: [
    'none',
    'provisioning',
    'unschedulable',
    'pending_timeout',
    'image_pull',
    'never_registered',
  ],
  /** The deletion of pod and Secret was asked for. */
  deleted: [false, true],
  handedOn: [false, true],
  /** The job that ran when the job's deadline was set. */
  deadlineOf: ['none', 'A', 'B'],
  /** The kubelet published what the probes said too late for the life to wait for it. */
  late: [false, true],
  /** A job has had all the time that a job may take. */
  expiredWait: [false, true],
} as const;

type Fields = { readonly [Name in keyof typeof FIELDS]: (typeof FIELDS)[Name][number] };

export interface State extends Fields {
  /** What the life believes, what it has heard since it began to unregister, what it does about it, its verdict: numbers of mind.ts. */
  readonly belief: number;
  readonly heard: number;
  readonly plan: number;
  readonly verdict: number;
}

export type Setup = State['setup'];

const NAMES = Object.keys(FIELDS) as readonly (keyof Fields)[];
const NUMBERS = ['belief', 'heard', 'plan', 'verdict'] as const;
const BYTE = 256;
/** Of each field the letter of each value. */
const LETTERS = NAMES.map(
  (name) =>
    new Map<unknown, string>(FIELDS[name].map((value, code) => [value, String.fromCharCode(code)])),
);

/** A short key of the state: one byte for each field, two for each number. */
export function encode(state: State): string {
  let key = '';
  for (let at = 0; at < NAMES.length; at++)
    key += LETTERS[at]?.get(state[NAMES[at] as keyof Fields]);
  for (const name of NUMBERS)
    key += String.fromCharCode(state[name] % BYTE, Math.floor(state[name] / BYTE));
  return key;
}

/** Copied, never changed: so all states have their fields in the same order, which is much quicker. */
const FIRST = {
  ...(Object.fromEntries(NAMES.map((name) => [name, FIELDS[name][0]])) as unknown as Fields),
  belief: 0,
  heard: 0,
  plan: 0,
  verdict: 0,
};

/** The reverse of {@link encode}. */
export function decode(key: string): State {
  const state: Record<string, unknown> = { ...FIRST };
  for (let at = 0; at < NAMES.length; at++) {
    const name = NAMES[at] as keyof Fields;
    state[name] = FIELDS[name][key.charCodeAt(at)];
  }
  NUMBERS.forEach(
    (name, index) =>
      (state[name] =
        key.charCodeAt(NAMES.length + 2 * index) +
        BYTE * key.charCodeAt(NAMES.length + 2 * index + 1)),
  );
  return state as unknown as State;
}

/** A life that has just been admitted. */
export function beginning(setup: Setup): State {
  return { ...FIRST, setup };
}

export const isSilent = ({ setup }: State): boolean =>
  setup === 'ephemeral, silent' || setup === 'static, silent';
export const isStatic = ({ setup }: State): boolean =>
  setup === 'static' || setup === 'static, silent';
/** No CI server knows it. */
export const isCommand = ({ setup }: State): boolean =>
  setup === 'command' || setup === 'checkpointing command';
export const isEphemeral = (state: State): boolean => !isStatic(state) && !isCommand(state);
export const hasJob = ({ job }: State): boolean => job === 'A runs' || job === 'B runs';
export const isLost = ({ job }: State): boolean => job === 'A lost' || job === 'B lost';
export const isDone = ({ job }: State): boolean => job === 'A done' || job === 'B done';
