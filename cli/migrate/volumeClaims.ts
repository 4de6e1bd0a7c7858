/**
 * Converts the claims of a RunnerSet. Each Holdfast runner has a slot, with its own claim. Pure.
 */
import { isObject } from '../../core/domain/isObject.ts';
import { getPath, toText } from './fieldRows.ts';
import type { Json, SetDraft } from './setDraft.ts';

const MODES = ['ReadWriteOnce', 'ReadWriteMany', 'ReadWriteOncePod'];
const FIELD = 'spec.volumeClaimTemplates';

/**
 * Converts the claims, and removes their mounts from the runner's container.
 * @param daemonMounts - mounts of the Docker daemon next to the runner
 */
export function convertClaims(
  value: unknown,
  draft: SetDraft,
  daemonMounts: readonly Json[],
): void {
  if (value === undefined || value === null) return;
  const claims = draft
    .objects(value, FIELD)
    .flatMap((template, index) =>
      resolveClaimName(template, `${FIELD}[${index}]`, draft, daemonMounts),
    );
  if (claims.length === 0) return;
  draft.put('template', 'volumeClaims', claims);
  draft.note(
    FIELD,
    "each runner of the set has a slot with its own claim (NAME-0, NAME-1, …), which starts empty: the data of ARC's claims is not copied. The worker's pod policy must allow the names (claims)",
    'template',
    'volumeClaims',
  );
}

/** Claims of a slot are only for the runner container. */
function addEphemeral(template: Json, field: string, draft: SetDraft): void {
  draft.volume({
    name: getPath(template, 'metadata', 'name'),
    ephemeral: { volumeClaimTemplate: { spec: template['spec'] } },
  });
  draft.note(
    field,
    'only the Docker daemon mounts it: each pod has its own claim, which is deleted with the pod, so nothing is kept from one runner to the next',
    'spec',
    'volumes',
  );
}

function resolveClaimName(
  template: Json,
  field: string,
  draft: SetDraft,
  daemonMounts: readonly Json[],
): Json[] {
  const name = getPath(template, 'metadata', 'name');
  const mounts = (draft.parts.runner['volumeMounts'] ?? []) as Json[];
  const own = mounts.filter((mount) => mount['name'] === name);
  draft.put(
    'runner',
    'volumeMounts',
    mounts.filter((mount) => mount['name'] !== name),
  );
  const [mount, second] = own;
  if (mount === undefined) {
    if (daemonMounts.some((each) => each['name'] === name)) addEphemeral(template, field, draft);
    else draft.note(field, 'left out: no container mounts it', 'template', 'volumeClaims');
    return [];
  }
  if (second !== undefined || mount['subPath'] !== undefined)
    draft.note(
      field,
      'is mounted once, without subPath; use a separate claim for each part',
      'template',
      'volumeClaims',
    );
  const modes = getPath(template, 'spec', 'accessModes');
  const accessModes = Array.isArray(modes)
    ? modes.filter((mode) => MODES.includes(mode as string))
    : [];
  const storageClass = getPath(template, 'spec', 'storageClassName');
  const storage = getPath(template, 'spec', 'resources', 'requests', 'storage');
  const kept = {
    dataSource: getPath(template, 'spec', 'dataSource'),
    selector: getPath(template, 'spec', 'selector'),
    annotations: getPath(template, 'metadata', 'annotations'),
  };
  for (const other of Object.keys(isObject(template['spec']) ? template['spec'] : {}).filter(
    (key) =>
      ![
        'accessModes',
        'storageClassName',
        'resources',
        'volumeMode',
        'dataSource',
        'selector',
      ].includes(key),
  )) {
    draft.note(
      `${field}.spec.${other}`,
      'left out: a claim that Holdfast makes has a size, a class, access modes, a data source and a selector. Make the claims yourself, and name them without storage',
      'template',
      'volumeClaims',
    );
  }
  return [
    {
      name,
      mountPath: mount['mountPath'],
      claim: `${toText(draft.parts.set['name'])}-${toText(name)}`,
      storage,
      ...(storageClass === undefined ? {} : { storageClass }),
      ...(accessModes.length === 0 ? {} : { accessModes }),
      ...Object.fromEntries(Object.entries(kept).filter(([, each]) => isObject(each))),
    },
  ];
}
