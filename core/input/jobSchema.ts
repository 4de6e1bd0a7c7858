/** Schema of the input of the `job` workflow, field by field. */
import { z } from 'zod';
import {
  JOB_TIMEOUTS,
  STEP_TIMEOUTS,
  type JobTrigger,
  type PostStepInput,
  type StepInput,
  type StepSecurityContext,
} from '../contract/index.ts';
import { COMMIT, REF } from '../domain/gitNames.ts';
import {
  dnsLabel,
  durationFields,
  envFields,
  scopeFields,
  commandLine,
  type FieldsOf,
} from './fields.ts';

// YAML parses `cpu: 2` as a number.
const quantities = z
  .record(
    z.string().min(1),
    z.union(
      [z.string().min(1), z.number().positive()],
      'must be a quantity, such as 2, "500m" or "4Gi"',
    ),
  )
  .exactOptional();

const volume = z.looseObject({
  name: dnsLabel('a volume name'),
  mountPath: z.string().regex(/^\/[^:\0]+$/, 'must be an absolute path without ":"'),
  readOnly: z.boolean().exactOptional(),
});

const userId = z.number().int().min(0).max(2_147_483_647).exactOptional();

const capabilityNames = z
  .array(z.string().regex(/^[A-Z_]+$/, 'must be a capability such as NET_ADMIN'))
  .exactOptional();

const profile = z.record(z.string(), z.string()).exactOptional();

const securityContext = z.strictObject({
  runAsUser: userId,
  runAsGroup: userId,
  runAsNonRoot: z.boolean().exactOptional(),
  readOnlyRootFilesystem: z.boolean().exactOptional(),
  allowPrivilegeEscalation: z.boolean().exactOptional(),
  privileged: z.boolean().exactOptional(),
  capabilities: z.strictObject({ add: capabilityNames, drop: capabilityNames }).exactOptional(),
  seccompProfile: profile,
  appArmorProfile: profile,
  seLinuxOptions: profile,
} satisfies FieldsOf<StepSecurityContext>);

const stepFields = {
  ...durationFields(STEP_TIMEOUTS),
  name: z
    .string('is missing')
    .regex(
      /^[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$/,
      'must consist of letters, digits, ".", "_" and "-", at most 63, and begin and end with a letter or a digit',
    ),
  image: z.string().min(1).max(500).exactOptional(),
  commands: z.string().min(1, 'is empty').exactOptional(),
  command: commandLine.exactOptional(),
  env: envFields.exactOptional(),
  resources: z.strictObject({ requests: quantities, limits: quantities }).exactOptional(),
  volumes: z.array(volume).max(20, 'must have at most 20 volumes').exactOptional(),
  securityContext: securityContext.exactOptional(),
  stop: z
    .strictObject({
      target: z.enum(['process', 'group'], 'must be "process" or "group"').exactOptional(),
    })
    .exactOptional(),
  onEviction: z.enum(['fail', 'replace'], 'must be "fail" or "replace"').exactOptional(),
} satisfies FieldsOf<StepInput>;

const postOnly = {
  bestEffort: z.boolean().exactOptional(),
  skipOnSuccess: z.boolean().exactOptional(),
};

const step = z.strictObject({
  ...stepFields,
  bestEffort: z.undefined('is for steps of post only; remove it').exactOptional(),
  skipOnSuccess: z.undefined('is for steps of post only; remove it').exactOptional(),
});

const gitRef = z
  .string()
  .regex(
    REF,
    'must be a name as Git has them: without white space and the characters ~ ^ : ? * [ and \\',
  );

/** Schema of a job. Unknown fields are errors. */
export const jobSchema = z.strictObject({
  ...durationFields(JOB_TIMEOUTS),
  name: z
    .string('is missing')
    .regex(
      /^[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$/,
      'must consist of letters, digits, ".", "_" and "-", at most 63, and begin and end with a letter or a digit',
    ),
  repository: scopeFields.repository,
  namespace: dnsLabel('a Kubernetes namespace').exactOptional(),
  source: z
    .strictObject({
      event: z.enum(
        ['push', 'pull_request', 'schedule'],
        'must be "push", "pull_request" or "schedule"',
      ),
      commit: z
        .string()
        .regex(COMMIT, "must be a commit's id: at most 64 letters and digits")
        .exactOptional(),
      ref: gitRef.exactOptional(),
      base: gitRef.exactOptional(),
      pullRequest: z.number().int().positive().exactOptional(),
      untrusted: z.boolean('must be true or false').exactOptional(),
    } satisfies FieldsOf<JobTrigger>)
    .exactOptional(),
  pre: z.array(step).exactOptional(),
  test: z
    .array(step, 'is missing: the list of steps that are the job')
    .min(1, 'must have at least one step'),
  post: z
    .array(z.strictObject({ ...stepFields, ...postOnly } satisfies FieldsOf<PostStepInput>))
    .exactOptional(),
});
