import fc from 'fast-check';
import { podErrors, type PodDefaults } from '../../../activities/compute/kubernetes/podSpec.ts';
import {
  podPolicySchema,
  DEFAULT_POD_POLICY,
  type PodPolicy,
} from '../../../activities/compute/kubernetes/podPolicy/podPolicy.ts';
import {
  toPolicyInput,
  installationImages,
  policyViolations,
} from '../../../activities/compute/kubernetes/podPolicy/policyViolations.ts';
import { processErrors } from '../../../activities/compute/process/runnerCommand.ts';
import { parseDeregistrationInput } from '../../../core/input/deregistration.ts';
import type { Parsed } from '../../../core/input/fields.ts';
import { parseJobInput } from '../../../core/input/job.ts';
import { parseRunnerInput } from '../../../core/input/runner.ts';
import { parseSweepInput } from '../../../core/input/sweep.ts';
import { assertReadableMessage } from '../readableMessage.ts';
import { POLICY_EXAMPLES, RUNNER_EXAMPLES } from '../examples.ts';
import { mutatedJson } from '../mutations.ts';
import { target } from '../target.ts';

const OTHERS = [
  {
    organization: 'acme',
    runner: { name: 'acme-1', id: 7 },
    reason: 'gone',
    credential: 'default',
    patience: '1h',
  },
  {
    dryRun: true,
    force: false,
    scopes: [{ repository: 'acme/app', credential: 'default' }],
    podAge: '1h',
  },
];
const JOBS = [
  {
    name: 'web',
    repository: 'acme/app',
    timeout: '2h',
    gracePeriod: '10m',
    maxAge: '1d',
    pre: [
      {
        name: 'rent',
        image: 'cloud:1',
        commands: './rent.sh',
        env: { A: 'a' },
        volumes: [
          { name: 'cloud', mountPath: '/cloud', readOnly: true, secret: { secretName: 'cloud' } },
        ],
      },
    ],
    test: [
      {
        name: 'unit',
        command: ['make', 'test'],
        resources: { requests: { cpu: 1 }, limits: { memory: '2Gi' } },
        stop: { target: 'group' },
        onEviction: 'replace',
        timeout: '1h',
        gracePeriod: '30s',
      },
    ],
    post: [{ name: 'clean', commands: './clean.sh', bestEffort: true, skipOnSuccess: true }],
  },
];
const DEFAULTS: PodDefaults = {
  image: 'ghcr.io/acme/runner:1',
  command: ['/bin/bash'],
  supervisor: { image: 'holdfast-worker:1' },
  template: { spec: { containers: [{ name: 'runner', env: [{ name: 'A', value: 'a' }] }] } },
};
const POLICIES: readonly PodPolicy[] = [
  DEFAULT_POD_POLICY,
  ...POLICY_EXAMPLES.map((example) => podPolicySchema.parse(example)),
];
const HOME = 'ci';

export const runners = target(
  'runners',
  'inputs of workflows: a runner, to its pod before each policy; deregistration; sweep; a job, to the lives of its steps',
  () => ({
    inputs: fc.oneof(
      { arbitrary: mutatedJson(RUNNER_EXAMPLES), weight: 8 },
      { arbitrary: mutatedJson(JOBS), weight: 1 },
      { arbitrary: mutatedJson(OTHERS), weight: 1 },
    ),
    run(raw) {
      // As it comes from Temporal.
      const input = JSON.parse(JSON.stringify(raw) ?? 'null') as unknown;
      clearFaults(parseDeregistrationInput(input));
      clearFaults(parseSweepInput(input));
      const job = parseJobInput(input, { workflowId: 'job-a' });
      clearFaults(job);
      if (job.ok)
        for (const step of job.spec.steps)
          if (!parseRunnerInput(step.runner).ok)
            throw new Error(
              `admitted as a step of a job, and not as a life: ${JSON.stringify(step.runner)}`,
            );
      const runner = parseRunnerInput(input, { workflowId: 'runner-a' });
      clearFaults(runner);
      if (!runner.ok) return;
      const { pod } = runner.spec;
      const ofProcess = [
        ...processErrors(pod, ['./run.sh'], true),
        ...processErrors(pod, ['./run.sh'], false),
      ];
      const own = { images: installationImages(DEFAULTS), namespaces: [HOME] };
      const ofPod = POLICIES.flatMap((policy) =>
        podErrors(pod, DEFAULTS, 'holdfast', (made, request) =>
          policyViolations(toPolicyInput(made, request, HOME), policy, own),
        ),
      );
      for (const fault of [...ofProcess, ...ofPod]) assertReadableMessage(fault, 'admission');
    },
  }),
);

function clearFaults<T>(parsed: Parsed<T>): void {
  if (!parsed.ok)
    for (const { field, message } of parsed.errors) assertReadableMessage(message, field);
}
