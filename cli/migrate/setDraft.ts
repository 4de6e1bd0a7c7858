/** Draft of a runner set that is built field by field from an ARC object. */
import { stripControlCharacters, truncate } from '../../core/domain/displayText.ts';
import { isObject } from '../../core/domain/isObject.ts';
import { RUNNER_CONTAINER } from '../../core/domain/podTemplate.ts';
import type { FieldError } from '../shared/exit.ts';

/** JSON object under construction. */
export type Json = Record<string, unknown>;

/**
 * Part of a runner set: the set itself, its template, the runner container, the pod spec or the pod
 * metadata.
 */
export type Part = 'set' | 'template' | 'runner' | 'spec' | 'metadata';

/** Path of each part in the set. */
const PATHS: Readonly<Record<Part, readonly (string | number)[]>> = {
  set: [],
  template: ['template'],
  runner: ['template', 'pod', 'spec', 'containers', 0],
  spec: ['template', 'pod', 'spec'],
  metadata: ['template', 'pod', 'metadata'],
};

/** Note for the user about a field of ARC: its meaning and its replacement. */
export interface MigrationNote {
  /** Field of the ARC object, such as `spec.template.spec.workDir`. */
  readonly field: string;
  readonly text: string;
  /** Path in the set at which the note is shown. Only its beginning must exist. */
  readonly at: readonly (string | number)[];
  /** Whether a person must decide before the set may start runners. */
  readonly needsDecision: boolean;
}

const MAX_SHOWN = 200;
/** Fields of the template that are written first, for readability. */
const FIRST = [
  'enterprise',
  'organization',
  'repository',
  'credential',
  'labels',
  'ephemeral',
  'image',
  'command',
  'args',
];

/** Quotes a value of an object for a note: on one line and truncated. */
export const quoted = (value: unknown): string =>
  JSON.stringify(
    truncate(
      stripControlCharacters(typeof value === 'string' ? value : JSON.stringify(value)),
      MAX_SHOWN,
    ),
  );

/** Collects the fields, the notes and the errors of a set. */
export class SetDraft {
  /** Label of the object that it is converted from. */
  readonly label: string;
  readonly notes: MigrationNote[] = [];
  readonly faults: FieldError[] = [];
  readonly parts: Readonly<Record<Part, Json>> = {
    set: {},
    template: {},
    runner: fields(),
    spec: fields(),
    metadata: fields(),
  };
  readonly containers: Json[] = [];
  readonly initContainers: Json[] = [];
  readonly volumes: Json[] = [];

  /** Field of the ARC object that is being converted. */
  source: string | undefined;
  /** Field of ARC for each path in the set. */
  readonly #sources = new Map<string, string>();

  constructor(label: string) {
    this.label = label;
  }

  put(part: Part, key: string, value: unknown): void {
    this.parts[part][key] = value;
    if (this.source !== undefined) this.#sources.set([...PATHS[part], key].join('.'), this.source);
  }

  /**
   * Returns ARC's fields that a field of the set comes from, for errors.
   * @param field - one path or several, such as `minIdle, max`
   */
  sourceOf(field: string): string {
    const sources = field.split(', ').flatMap((path) => {
      const parts = path.split('.');
      const known = parts
        .map((_, index) => this.#sources.get(parts.slice(0, parts.length - index).join('.')))
        .find((source) => source !== undefined);
      return known ?? [];
    });
    const own = `${field} of the set`;
    return sources.length === 0 ? own : `${[...new Set(sources)].join(', ')} (${own})`;
  }

  note(field: string, text: string, part: Part, key?: string): void {
    this.notes.push({
      field,
      text,
      at: [...PATHS[part], ...(key === undefined ? [] : [key])],
      needsDecision: false,
    });
  }

  /** Adds a note like {@link note}, and makes the set paused. */
  needsDecision(field: string, text: string, part: Part, key?: string): void {
    this.notes.push({
      field,
      text,
      at: [...PATHS[part], ...(key === undefined ? [] : [key])],
      needsDecision: true,
    });
  }

  addError(field: string, message: string): void {
    this.faults.push({
      field: `${this.label}: ${truncate(stripControlCharacters(field), MAX_SHOWN)}`,
      message,
    });
  }

  /** Returns a list of objects. Anything else is an error. */
  objects(value: unknown, field: string): Json[] {
    if (Array.isArray(value) && value.every(isObject)) return value;
    this.addError(field, 'must be a list of objects');
    return [];
  }

  /** Returns a list of the runner container, and creates it if necessary. */
  runnerField(key: 'env' | 'volumeMounts'): Json[] {
    const list = (this.parts.runner[key] ?? []) as Json[];
    this.parts.runner[key] = list;
    return list;
  }

  /** Adds a variable to the runner container, unless it has one with this name. */
  env(variable: Json): void {
    addNamed(this.runnerField('env'), variable);
  }

  /**
   * Adds a mount to the runner container, unless it has one at this path. Returns the mount at the
   * path.
   */
  mount(mount: Json): Json {
    const mounts = this.runnerField('volumeMounts');
    const own = mounts.find(({ mountPath }) => mountPath === mount['mountPath']);
    if (own === undefined) mounts.push(mount);
    return own ?? mount;
  }

  /** Adds a volume, unless there is one with this name. */
  volume(volume: Json): void {
    addNamed(this.volumes, volume);
  }

  /** Returns the set in its current state, not validated. */
  input(): Json {
    const { set, template, runner, spec, metadata } = this.parts;
    const containers = [
      ...(Object.keys(runner).length === 0 ? [] : [{ name: RUNNER_CONTAINER, ...runner }]),
      ...this.containers,
    ];
    const podSpec = filled({
      ...spec,
      initContainers: this.initContainers,
      containers,
      volumes: this.volumes,
    });
    const pod = filled({ metadata: filled(metadata), spec: podSpec });
    const paused = this.notes.some(({ needsDecision }) => needsDecision) ? { paused: true } : {};
    const { name, ...scale } = set;
    const first = Object.fromEntries(
      FIRST.flatMap((key) => (template[key] === undefined ? [] : [[key, template[key]]])),
    );
    return { name, ...paused, ...scale, template: { ...first, ...template, ...filled({ pod }) } };
  }
}

/** Returns an empty object without a prototype, so that any key is only a field. */
const fields = (): Json => Object.create(null) as Json;

/** Returns the object without empty lists and objects. */
const filled = (fields: Json): Json =>
  Object.fromEntries(
    Object.entries(fields).filter(
      ([, value]) =>
        !(typeof value === 'object' && value !== null && Object.keys(value).length === 0),
    ),
  );

function addNamed(list: Json[], item: Json): void {
  if (!list.some(({ name }) => name === item['name'])) list.push(item);
}
