/** Schema of the input of the `runner` workflow, field by field. */
import { z } from 'zod';
import {
  RUNNER_INTERVALS,
  RUNNER_TIMEOUTS,
  type RunnerInput,
  STOP_TIMEOUTS,
} from '../contract/index.ts';
import { CI_ID_PATTERN } from '../domain/ciId.ts';
import { CI_SERVER_KINDS } from '../domain/ciServerKind.ts';
import {
  commandLine,
  credentialName,
  dnsLabel,
  durationFields,
  durationString,
  envFields,
  type FieldsOf,
  identifier,
  scopeFields,
} from './fields.ts';
import { caSchema, proxySchema } from './network.ts';
import { rerunPolicy } from './rerun.ts';

// CI servers permit no longer labels, and control characters are never valid.
const label = z
  .string()
  .regex(
    /^[^\s,\p{Cc}][^,\p{Cc}]{0,255}$/u,
    'must be 1 to 256 characters without commas or control characters',
  );

const metadata = z.record(z.string(), z.string());

/** Schema of a pod template. {@link podTemplateErrors} checks what is in its spec. */
export const podTemplateSchema = z.strictObject({
  metadata: z
    .strictObject({ labels: metadata.exactOptional(), annotations: metadata.exactOptional() })
    .exactOptional(),
  spec: z.record(z.string(), z.unknown()).exactOptional(),
});

/** Schema of a claim that a runner mounts. */
export const volumeClaim = z.strictObject({
  name: dnsLabel('a volume name').max(40, 'must be at most 40 characters'),
  mountPath: z.string().regex(/^\/[^:\0]+$/, 'must be an absolute path without ":"'),
  claim: z
    .string()
    .regex(/^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$/, 'must be the name of a PersistentVolumeClaim')
    .exactOptional(),
  storage: z
    .string()
    .regex(/^[0-9]+(\.[0-9]+)?([KMGTPE]i?)?$/, 'is not a size; write for example "10Gi"')
    .exactOptional(),
  storageClass: z.string().min(1).max(253).exactOptional(),
  accessModes: z
    .array(z.enum(['ReadWriteOnce', 'ReadWriteMany', 'ReadWriteOncePod']))
    .min(1)
    .exactOptional(),
  dataSource: z
    .strictObject({
      apiGroup: z.string().min(1).max(253).exactOptional(),
      kind: z.string().min(1).max(63),
      name: z.string().min(1).max(253),
    })
    .exactOptional(),
  selector: z
    .strictObject({
      matchLabels: metadata.exactOptional(),
      matchExpressions: z
        .array(
          z.strictObject({
            key: z.string().min(1),
            operator: z.enum(['In', 'NotIn', 'Exists', 'DoesNotExist']),
            values: z.array(z.string()).exactOptional(),
          }),
        )
        .exactOptional(),
    })
    .exactOptional(),
  annotations: metadata.exactOptional(),
});

const stop = z.strictObject({
  ...durationFields(STOP_TIMEOUTS),
  signals: z.string().exactOptional(),
  target: z.enum(['process', 'group'], 'must be "process" or "group"').exactOptional(),
  cleanupCommand: commandLine.exactOptional(),
});

/** Schema of a path in the artifact store: segments separated by slashes, without `.` and `..`. */
export const storageKey = z
  .string()
  .max(1_000)
  .regex(
    /^(?!\.{1,2}(\/|$))[^/\s\p{Cc}]+(\/(?!\.{1,2}(\/|$))[^/\s\p{Cc}]+)*$/u,
    'must be a path in the store: segments with slashes between them, without white space, "." and ".."',
  );

const storage = z.strictObject({
  path: storageKey,
  sharedDirSources: z.array(storageKey).max(100, 'must have at most 100 keys'),
  timeout: durationString,
});

const CI_SERVERS = [...CI_SERVER_KINDS, 'none'] as const;

/** Schema of a runner. Unknown fields are errors. */
export const runnerSchema = z.strictObject({
  ...scopeFields,
  name: z
    .string()
    .regex(/^[A-Za-z0-9][A-Za-z0-9_.-]*$/, 'must consist of letters, digits, ".", "_" and "-"')
    .max(
      50,
      'must be at most 50 characters: a suffix is appended, and a runner name has at most 64',
    )
    .exactOptional(),
  ciServer: z
    .enum(CI_SERVERS, `must be ${CI_SERVERS.map((kind) => `"${kind}"`).join(' or ')}`)
    .exactOptional(),
  credential: credentialName.exactOptional(),
  runnerGroup: z
    .string()
    .regex(/^[^\p{Cc}]{1,200}$/u, 'must be 1 to 200 characters without control characters')
    .exactOptional(),
  runnerGroupId: z
    .string('expected text: put the id in quotes')
    .regex(CI_ID_PATTERN, 'must be 1 to 100 characters without white space and "/"')
    .exactOptional(),
  demand: z.enum(['webhook', 'scaleSet'], 'must be "webhook" or "scaleSet"').exactOptional(),
  scaleSet: z
    .strictObject({
      name: identifier('the name of a scale set')
        .max(64, 'must be at most 64 characters')
        .exactOptional(),
      adopt: z.boolean('must be true or false').exactOptional(),
    })
    .exactOptional(),
  labels: z
    .array(label)
    .min(1, 'must have at least one label')
    .max(100, 'must have at most 100 labels')
    .exactOptional(),
  ephemeral: z.boolean().exactOptional(),
  disableUpdate: z.boolean().exactOptional(),
  set: identifier('a set name').exactOptional(),
  job: z.string().min(1).max(1_000).exactOptional(),
  storage: storage.exactOptional(),
  untrusted: z.boolean('must be true or false').exactOptional(),
  namespace: dnsLabel('a Kubernetes namespace').exactOptional(),
  image: z.string().min(1).max(500).exactOptional(),
  command: commandLine.exactOptional(),
  args: z.array(z.string()).exactOptional(),
  env: envFields.exactOptional(),
  pod: podTemplateSchema.exactOptional(),
  proxy: proxySchema.exactOptional(),
  ca: caSchema.exactOptional(),
  supervisor: z
    .enum(['inject', 'image', 'none'], 'must be "inject", "image" or "none"')
    .exactOptional(),
  volumeClaims: z.array(volumeClaim).max(20, 'must have at most 20 claims').exactOptional(),
  timeouts: z.strictObject(durationFields(RUNNER_TIMEOUTS)).exactOptional(),
  stop: stop.exactOptional(),
  onTerm: z
    .enum(['drain', 'stop', 'checkpoint'], 'must be "drain", "stop" or "checkpoint"')
    .exactOptional(),
  onEviction: z
    .enum(['fail', 'replace', 'resume'], 'must be "fail", "replace" or "resume"')
    .exactOptional(),
  maxAttempts: z.number().int().min(1).max(1_000).exactOptional(),
  rerun: rerunPolicy.exactOptional(),
  intervals: z.strictObject(durationFields(RUNNER_INTERVALS)).exactOptional(),
} satisfies FieldsOf<RunnerInput>);
