import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from '@jest/globals';
import { parseAllDocuments } from 'yaml';
import { runCli } from '../support/cli.ts';

const folder = mkdtempSync(join(tmpdir(), 'hf-policy-'));
afterAll(() => rmSync(folder, { recursive: true }));
const ARGS = ['pod-policy', '--service-account', 'holdfast/worker'];

test('prints the objects for the worker with the given service account and settings', async () => {
  const file = join(folder, 'policy.yaml');
  writeFileSync(file, 'images: ["ghcr.io/acme/*"]\n');
  const { status, stdout } = await runCli([...ARGS, '--name', 'mine'], {
    HOLDFAST_POD_POLICY_FILE: file,
    HOLDFAST_SUPERVISOR_IMAGE: 'sup:1',
    HOLDFAST_KUBERNETES_NAMESPACE: 'runners',
    HOLDFAST_NAMESPACES: 'web, docs',
  });
  expect(status).toBe(0);
  const [policy, binding, ofClaims] = parseAllDocuments(stdout).map(
    (document) =>
      document.toJS() as {
        kind: string;
        metadata: object;
        spec: { matchConditions: { expression: string }[]; variables: { expression: string }[] };
      },
  );
  expect([policy, binding]).toMatchObject([
    { kind: 'ValidatingAdmissionPolicy', metadata: { name: 'mine' } },
    {
      kind: 'ValidatingAdmissionPolicyBinding',
      metadata: { name: 'mine' },
      spec: { policyName: 'mine' },
    },
  ]);
  expect(ofClaims).toMatchObject({
    kind: 'ValidatingAdmissionPolicy',
    metadata: { name: 'mine-claims' },
    spec: { matchConstraints: { resourceRules: [{ resources: ['persistentvolumeclaims'] }] } },
  });
  expect(policy?.spec.matchConditions[0]?.expression).toContain(
    '"system:serviceaccount:holdfast:worker"',
  );
  const own = policy?.spec.variables[0]?.expression;
  expect(own).toContain(String.raw`"(?s)^(?:ghcr\\.io/acme/.*)$"`);
  expect(own).toContain('"(?s)^(?:sup:1)$"');
  expect(own).toContain('"namespaces": dyn(["runners","web","docs"])');
});

test("the policy for the account of a set's hooks, in its namespace only", async () => {
  const { status, stdout } = await runCli([
    'pod-policy',
    '--job-pods',
    '--service-account',
    'a-jobs/holdfast-job-pods',
  ]);
  expect(status).toBe(0);
  expect(stdout).toContain('system:serviceaccount:a-jobs:holdfast-job-pods');
  expect(stdout).toContain('"namespaces": dyn(["a-jobs"])');
  expect(stdout).toContain('runner-pod');
});

test('empty settings count as not set, as for the worker', async () => {
  const { status, stdout } = await runCli(ARGS, {
    HOLDFAST_POD_POLICY_FILE: '',
    HOLDFAST_KUBERNETES_NAMESPACE: ' ',
  });
  expect(status).toBe(0);
  expect(stdout).toContain('"namespaces": dyn(["holdfast"])');
});

test('an invalid policy file: each field, status 2', async () => {
  const file = join(folder, 'wrong.yaml');
  writeFileSync(file, 'imagse: []\nhost: [all]\n');
  const { status, stdout, stderr } = await runCli(ARGS, { HOLDFAST_POD_POLICY_FILE: file });
  expect({ status, stdout }).toEqual({ status: 2, stdout: '' });
  expect(stderr).toMatch(/HOLDFAST_POD_POLICY_FILE: imagse is not a known field/);
  expect(stderr).toMatch(/HOLDFAST_POD_POLICY_FILE: host\.0 /);
});
