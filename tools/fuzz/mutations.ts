/**
 * Inputs close to real ones, in which assumptions of a parser do not hold. All shrink to fewer and
 * smaller changes.
 */
import fc, { type Arbitrary } from 'fast-check';

/** Deeper than real input, but not too deep for JSON.stringify even if it is nested into itself. */
const DEEP = 300;
/** Deep enough for a recursion without a bound to fail. */
const DEEPEST = 5_000;

/** Values of one document: repeated and repeated again, it would fill the memory. */
const LARGEST = 20_000;

const nested = (depth: number): unknown => {
  let value: unknown = 'deep';
  for (let level = 0; level < depth; level++) value = level % 2 === 0 ? [value] : { a: value };
  return value;
};

const WORDS = [
  '',
  ' ',
  '\n',
  '\0',
  '\ud800',
  '\u202e',
  '\u001b[31m',
  '../..',
  '/',
  '$(A)$$',
  "' OR ''='",
  '%s',
  '*',
  'a*a*a*a*a*a*a*a*b',
  '.*',
  '(',
  '[',
  '__proto__',
  'constructor',
  'toString',
  'null',
  'NaN',
  '-1',
  '0',
  '0s',
  '1d',
  '99999999999d',
  '1.5Gi',
  '1e9',
  '1970-01-01T00:00:00Z',
  '+275760-09-13T00:00:00.000Z',
  '2026-13-45',
  'SIGKILL',
  'https://',
  'holdfast.dev/x',
  'HOLDFAST_X',
  'runner',
] as const;

const word = fc.oneof(
  { arbitrary: fc.constantFrom(...WORDS), weight: 3 },
  { arbitrary: fc.string({ unit: 'binary', maxLength: 12 }), weight: 1 },
);
const text = fc.oneof(
  { arbitrary: word, weight: 8 },
  {
    arbitrary: fc
      .tuple(word, fc.constantFrom(40, 300, 5_000))
      .map(([part, times]) => (part === '' ? 'x' : part).repeat(times)),
    weight: 1,
  },
);
const number = fc.constantFrom(
  0,
  -0,
  -1,
  1,
  1.5,
  255,
  256,
  1e5,
  2 ** 31,
  2 ** 53,
  -(2 ** 53),
  1e21,
  1e308,
  -1e308,
  5e-324,
);
const value: Arbitrary<unknown> = fc.oneof(
  { arbitrary: fc.constantFrom(null, true, false), weight: 2 },
  { arbitrary: number, weight: 2 },
  { arbitrary: text, weight: 4 },
  {
    arbitrary: fc
      .constantFrom(
        '[]',
        '{}',
        '[null]',
        '[[]]',
        '{"":null}',
        '{"__proto__":{"a":1}}',
        '{"toString":1,"length":-1}',
        '{"name":null}',
      )
      .map((json) => JSON.parse(json) as unknown),
    weight: 2,
  },
  { arbitrary: fc.constantFrom(DEEP).map(nested), weight: 1 },
);

type Edit =
  | { readonly kind: 'replace'; readonly by: unknown }
  | { readonly kind: 'remove' | 'wrapInList' | 'wrapInObject' }
  | { readonly kind: 'rename' | 'add'; readonly key: string; readonly by: unknown }
  | { readonly kind: 'repeat'; readonly times: number }
  | { readonly kind: 'copyFrom'; readonly other: number };

const edit: Arbitrary<Edit> = fc.oneof(
  { arbitrary: fc.record({ kind: fc.constant('replace' as const), by: value }), weight: 6 },
  {
    arbitrary: fc.record({
      kind: fc.constantFrom('remove' as const, 'wrapInList' as const, 'wrapInObject' as const),
    }),
    weight: 3,
  },
  {
    arbitrary: fc.record({
      kind: fc.constantFrom('rename' as const, 'add' as const),
      key: word,
      by: value,
    }),
    weight: 2,
  },
  {
    arbitrary: fc.record({
      kind: fc.constant('repeat' as const),
      times: fc.constantFrom(2, 30, 2_000),
    }),
    weight: 1,
  },
  { arbitrary: fc.record({ kind: fc.constant('copyFrom' as const), other: fc.nat() }), weight: 2 },
);

/** Generates an example with some parts replaced, removed, renamed, repeated or swapped. */
export function mutatedJson(examples: readonly unknown[]): Arbitrary<unknown> {
  return fc
    .record({
      example: fc.constantFrom(...examples),
      edits: fc.array(fc.tuple(fc.nat(), edit), { maxLength: 5 }),
    })
    .map(({ example, edits }) => {
      const root = { '': structuredClone(example) };
      // Copied, because one edit can change the value that another one inserted, and the next case
      // needs the original.
      for (const [at, change] of edits) apply(root, at, structuredClone(change));
      return root[''];
    });
}

type Container = Record<string, unknown>;
interface Place {
  readonly owner: Container;
  readonly key: string;
}

/**
 * Returns the values of a document, itself first. Deep or long values are represented by a part.
 */
function places(root: Container): Place[] {
  const found: Place[] = [{ owner: root, key: '' }];
  for (let next = 0; next < found.length && found.length < 2_000; next++) {
    const place = found[next];
    const inner = place?.owner[place.key];
    if (typeof inner === 'object' && inner !== null)
      found.push(
        ...Object.keys(inner)
          .slice(0, 200)
          .map((key) => ({ owner: inner as Container, key })),
      );
  }
  return found;
}

function apply(root: Container, at: number, change: Edit): void {
  const all = places(root);
  const place = all[at % all.length];
  if (place === undefined) return;
  const { owner, key } = place;
  const present = owner[key];
  switch (change.kind) {
    case 'replace':
      return set(owner, key, change.by);
    case 'remove':
      if (Array.isArray(owner)) owner.splice(Number(key), 1);
      else if (owner !== root) delete owner[key];
      return;
    case 'wrapInList':
      return set(owner, key, [present]);
    case 'wrapInObject':
      return set(owner, key, { '': present });
    case 'rename':
      if (owner === root || Array.isArray(owner)) return;
      delete owner[key];
      return set(owner, change.key, present);
    case 'add':
      // The inherited "constructor" of a list is not JSON, and assigning to it fails here.
      if (typeof present === 'object' && present !== null && !Array.isArray(present))
        set(present as Container, change.key, change.by);
      return;
    case 'repeat': {
      const times = Math.max(
        1,
        Math.min(change.times, Math.floor((LARGEST - weight(root)) / weight(present))),
      );
      if (Array.isArray(present) && present.length > 0)
        set(
          owner,
          key,
          Array.from({ length: times }, (_none, index) =>
            structuredClone(present[index % present.length] as unknown),
          ),
        );
      else if (typeof present === 'string') set(owner, key, present.repeat(Math.min(times, 30)));
      return;
    }
    case 'copyFrom': {
      const other = all[change.other % all.length];
      if (other !== undefined && weight(root) < LARGEST)
        set(owner, key, structuredClone(other.owner[other.key]));
    }
  }
}

/**
 * Returns the number of values in the JSON text. Each ten characters of a string count as one more.
 * At most {@link LARGEST}.
 */
function weight(value: unknown, upTo = LARGEST): number {
  if (typeof value === 'string') return Math.min(upTo, 1 + value.length / 10);
  if (typeof value !== 'object' || value === null) return 1;
  let sum = 1;
  for (const inner of Object.values(value)) if (sum < upTo) sum += weight(inner, upTo - sum);
  return Math.min(upTo, sum);
}

/** Also the key that an assignment would take for the prototype. */
function set(owner: Container, key: string, to: unknown): void {
  Object.defineProperty(owner, key, {
    value: to,
    writable: true,
    enumerable: true,
    configurable: true,
  });
}

type TextEdit = { readonly at: number; readonly remove: number; readonly insert: string };

/**
 * Generates an example with some pieces cut out and others inserted.
 * @param pieces - tokens with a meaning in the language
 */
export function mutatedText(
  examples: readonly string[],
  pieces: readonly string[] = [],
): Arbitrary<string> {
  const deep = fc.constantFrom('[', '{"a":', '- ', '{a: ').map((open) => open.repeat(DEEPEST));
  const inserted = fc.oneof(
    { arbitrary: fc.constantFrom('', ...pieces), weight: 32 },
    { arbitrary: text, weight: 24 },
    {
      arbitrary: fc
        .tuple(fc.constantFrom('', ...pieces), fc.constantFrom(20, 500))
        .map(([piece, times]) => piece.repeat(times)),
      weight: 1,
    },
    { arbitrary: deep, weight: 1 },
  );
  const textEdit = fc.record({
    at: fc.nat({ max: 2 ** 20 }),
    remove: fc.oneof(fc.constantFrom(0, 1, 1_000_000), fc.nat({ max: 20 })),
    insert: inserted,
  });
  return fc
    .record({ example: fc.constantFrom(...examples), edits: fc.array(textEdit, { maxLength: 4 }) })
    .map(({ example, edits }) => edits.reduce(cut, example));
}

function cut(whole: string, { at, remove, insert }: TextEdit): string {
  const start = at % (whole.length + 1);
  return whole.slice(0, start) + insert + whole.slice(start + remove);
}
