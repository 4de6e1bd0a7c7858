/** The shape of the `runner` workflow's input, field by field; what the fields mean together is checked in runnerChecks.ts. */
import { z } from 'zod';
import { credentialName, duration, scopeFields, word } from './fields.ts';

// Kubernetes label values and GitHub label names both end at 256 at the most; control characters never make sense.
const label = z.string().regex(/^[^\s,\p{Cc}][^,\p{Cc}]{0,255}$/u, 'must be 1 to 256 characters without commas or control characters');
const strings = z.record(z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/, 'must be a name of an environment variable'), z.string());
const labels = z.record(z.string(), z.string());
const dnsLabel = (what: string) => z.string().regex(/^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/, `must be ${what}: lower-case letters, digits and "-", at most 63`);
const words = z.array(z.string()).min(1);

const volumeClaim = z.strictObject({
  name: dnsLabel('a volume name').max(40, 'must be at most 40 characters'),
  mountPath: z.string().regex(/^\/[^:\0]+$/, 'must be an absolute path without ":"'),
  claim: z.string().regex(/^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$/, 'must be the name of a PersistentVolumeClaim').optional(),
  storage: z.string().regex(/^[0-9]+(\.[0-9]+)?([KMGTPE]i?)?$/, 'is not a size; write for example "10Gi"').optional(),
  storageClass: z.string().min(1).max(253).optional(),
  accessModes: z.array(z.enum(['ReadWriteOnce', 'ReadWriteMany', 'ReadWriteOncePod'])).min(1).optional(),
});

/** Of {@link RunnerInput}. Unknown fields are errors. */
export const runnerSchema = z.strictObject({
  name: z.string().regex(/^[A-Za-z0-9][A-Za-z0-9_.-]*$/, 'must consist of letters, digits, ".", "_" and "-"').max(50, 'must be at most 50 characters: a suffix is appended and GitHub allows 64').optional(),
  ciServer: z.enum(['github', 'none'], 'must be "github" or "none"').optional(),
  ...scopeFields,
  credential: credentialName.optional(),
  runnerGroupId: z.number().int().positive().optional(),
  labels: z.array(label).min(1, 'must have at least one label').max(100, 'must have at most 100 labels').optional(),
  ephemeral: z.boolean().optional(),
  set: word('a set name').optional(),
  namespace: dnsLabel('a Kubernetes namespace').optional(),
  image: z.string().min(1).max(500).optional(),
  command: words.optional(),
  args: z.array(z.string()).optional(),
  env: strings.optional(),
  pod: z.strictObject({ metadata: z.strictObject({ labels: labels.optional(), annotations: labels.optional() }).optional(), spec: z.record(z.string(), z.unknown()).optional() }).optional(),
  supervisor: z.enum(['inject', 'image', 'none'], 'must be "inject", "image" or "none"').optional(),
  volumeClaims: z.array(volumeClaim).max(20, 'must have at most 20 claims').optional(),
  timeouts: z
    .strictObject({ provisioning: duration, podUnscheduled: duration, podPending: duration, registration: duration, idle: duration, jobTimeout: duration })
    .partial()
    .optional(),
  stop: z
    .strictObject({
      drainTimeout: duration,
      signalTimeout: duration,
      cleanupTimeout: duration,
      signals: z.string().regex(/^SIG[A-Z0-9]+(,SIG[A-Z0-9]+@\w+)*$/, 'is not a sequence of signals; write for example "SIGINT,SIGTERM@5s"'),
      cleanupCommand: words,
    })
    .partial()
    .optional(),
  onTerm: z.enum(['drain', 'stop', 'checkpoint'], 'must be "drain", "stop" or "checkpoint"').optional(),
  onEviction: z.enum(['fail', 'replace', 'resume'], 'must be "fail", "replace" or "resume"').optional(),
  intervals: z
    .strictObject({ resync: duration, busyRetry: duration, busyRecheck: duration, absentRecheck: duration, credentialsRetry: duration, onlineLookup: duration, removalSettle: duration, idleConfirm: duration, stopPatience: duration, heldBack: duration })
    .partial()
    .optional(),
});
