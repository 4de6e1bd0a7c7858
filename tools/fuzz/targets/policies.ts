import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { stringify } from 'yaml';
import { admissionPolicy } from '../../../activities/compute/kubernetes/podPolicy/admissionPolicy.ts';
import {
  toPolicyInput,
  policyViolations,
} from '../../../activities/compute/kubernetes/podPolicy/policyViolations.ts';
import { podSpec } from '../../../activities/compute/kubernetes/podSpec.ts';
import { parseRunnerInput } from '../../../core/input/runner.ts';
import type { ConfigProblem } from '../../../worker/settings/configError.ts';
import { readPodPolicy } from '../../../worker/settings/config.ts';
import { assertReadableMessage } from '../readableMessage.ts';
import { POLICY_EXAMPLES, RUNNER_EXAMPLES } from '../examples.ts';
import { mutatedJson, mutatedText } from '../mutations.ts';
import { target } from '../target.ts';

const YAML = [
  '\n---\n',
  '&a ',
  '*a',
  '<<: *a\n',
  '!!binary ',
  '? ',
  '- ',
  ': ',
  '"',
  "'",
  '{',
  '}',
  '[',
  ']',
  '~',
  '"*"',
  '["a*a*a*a*a*a*a*b"]',
  '0x1f',
  '*****',
];
const OWN = { images: ['holdfast-worker:1'], namespaces: ['ci'] };
const identity = { workflowId: 'runner-a', firstRunId: 'x', attempt: 1 };
/** Pod requests of runners. One has names for which a slow regular expression would take long. */
const REQUESTS = [...RUNNER_EXAMPLES, { ...RUNNER_EXAMPLES[2], image: 'a'.repeat(500) }].flatMap(
  (example) => {
    const parsed = parseRunnerInput(example);
    return parsed.ok ? [{ ...parsed.spec.pod, identity }] : [];
  },
);

export const policies = target(
  'policies',
  'files of HOLDFAST_POD_POLICY_FILE, and pods before them',
  () => {
    const folder = mkdtempSync(join(tmpdir(), 'holdfast-fuzz-'));
    const file = join(folder, 'policy.yaml');
    const pods = REQUESTS.map((request) =>
      toPolicyInput(
        podSpec(
          request,
          { image: 'a/b:1', supervisor: { image: 'holdfast-worker:1' }, command: ['x'] },
          'holdfast',
          undefined,
        ),
        request,
        OWN.namespaces[0] ?? '',
      ),
    );
    return {
      inputs: fc.oneof(
        {
          arbitrary: mutatedJson(POLICY_EXAMPLES).map((value) => JSON.stringify(value) ?? ''),
          weight: 4,
        },
        {
          arbitrary: mutatedText(
            POLICY_EXAMPLES.map((example) => stringify(example)),
            YAML,
          ),
          weight: 1,
        },
      ),
      run(text) {
        writeFileSync(file, text);
        const problems: ConfigProblem[] = [];
        const policy = readPodPolicy({ HOLDFAST_POD_POLICY_FILE: file }, problems);
        for (const { setting, message } of problems) assertReadableMessage(message, setting);
        if (problems.length > 0) return;
        for (const pod of pods)
          for (const fault of policyViolations(pod, policy, OWN))
            assertReadableMessage(fault, 'policy');
        JSON.stringify(
          admissionPolicy(policy, OWN, { name: 'holdfast', serviceAccount: 'holdfast/worker' }),
        );
      },
      close: () => rmSync(folder, { recursive: true }),
    };
  },
);
