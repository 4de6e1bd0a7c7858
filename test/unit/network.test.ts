import { describe, expect, test } from '@jest/globals';
import type { V1Pod } from '@kubernetes/client-node';
import { GITHUB_RUNNER } from '../../core/domain/runnerKinds/gitHub.ts';
import { podSpec, type PodDefaults } from '../../activities/compute/kubernetes/podSpec.ts';
import {
  policyViolations,
  toPolicyInput,
} from '../../activities/compute/kubernetes/podPolicy/policyViolations.ts';
import { podPolicySchema } from '../../activities/compute/kubernetes/podPolicy/podPolicy.ts';
import { podName } from '../../activities/compute/naming.ts';
import { processErrors } from '../../activities/compute/process/runnerCommand.ts';
import type { RunnerProxy } from '../../core/contract/index.ts';
import type { PodRequest } from '../../core/domain/pod.ts';
import { parseRunnerInput } from '../../core/input/runner.ts';

const PROXY: RunnerProxy = {
  http: { url: 'http://proxy.acme.com:3128' },
  https: { url: 'http://proxy.acme.com:3129/', credentialSecretRef: 'proxy-login' },
  noProxy: ['acme.internal', '.svc'],
};
const CA = { configMapKeyRef: { name: 'acme-ca', key: 'root.pem' } };

function requestOf(input: object): PodRequest {
  const parsed = parseRunnerInput({ organization: 'acme', ...input });
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.errors));
  return { ...parsed.spec.pod, identity: { workflowId: 'runner-a', firstRunId: 'r', attempt: 1 } };
}
function podOf(input: object, settings: PodDefaults = {}): V1Pod {
  const request = requestOf(input);
  return podSpec(request, { image: 'runner:1', command: ['run'], ...settings }, 'main', {
    secretName: podName(request.identity),
    keys: [GITHUB_RUNNER.registration.token.variable],
  });
}
const refused = (input: object): string[] => {
  const parsed = parseRunnerInput({ organization: 'acme', ...input });
  return parsed.ok ? [] : parsed.errors.map(({ code, field }) => `${code} ${field}`);
};

describe('a proxy', () => {
  test('is set in upper and lower case variables; its login is a reference that precedes the address', () => {
    const { env } = podOf({ proxy: PROXY }).spec!.containers[0]!;
    const login =
      'http://$(HOLDFAST_HTTPS_PROXY_USERNAME):$(HOLDFAST_HTTPS_PROXY_PASSWORD)@proxy.acme.com:3129/';
    expect(env).toEqual([
      { name: 'HOLDFAST_ATTEMPT', value: '1' },
      { name: 'http_proxy', value: 'http://proxy.acme.com:3128' },
      { name: 'HTTP_PROXY', value: 'http://proxy.acme.com:3128' },
      {
        name: 'HOLDFAST_HTTPS_PROXY_USERNAME',
        valueFrom: { secretKeyRef: { name: 'proxy-login', key: 'username' } },
      },
      {
        name: 'HOLDFAST_HTTPS_PROXY_PASSWORD',
        valueFrom: { secretKeyRef: { name: 'proxy-login', key: 'password' } },
      },
      { name: 'https_proxy', value: login },
      { name: 'HTTPS_PROXY', value: login },
      { name: 'no_proxy', value: 'acme.internal,.svc' },
      { name: 'NO_PROXY', value: 'acme.internal,.svc' },
      { name: 'HOLDFAST_REGISTRATION_DIR', value: '/holdfast-registration' },
    ]);
  });

  test("replaces the worker's own, after the variables that it refers to", () => {
    const names = podOf(
      { proxy: PROXY },
      { env: { https_proxy: 'http://other:1', A: 'b' } },
    ).spec!.containers[0]!.env!.map(({ name }) => name);
    expect(names.filter((name) => name === 'https_proxy')).toHaveLength(1);
    expect(names.indexOf('https_proxy')).toBeGreaterThan(
      names.indexOf('HOLDFAST_HTTPS_PROXY_PASSWORD'),
    );
  });

  test('is not used by the registration, because an additional authority could expose the token', () => {
    const [register] = podOf({ ephemeral: false, proxy: PROXY, ca: CA }).spec!.initContainers!;
    expect(register?.name).toBe('holdfast-register');
    expect(JSON.stringify(register)).not.toMatch(/proxy|holdfast-ca|CERT/i);
  });

  test.each<[object, string[]]>([
    [{ proxy: { https: { url: 'http://bot:secret@proxy:3128' } } }, ['invalid proxy.https.url']],
    [{ proxy: { http: { url: 'http://$(AWS_SECRET_ACCESS_KEY):1' } } }, ['invalid proxy.http.url']],
    [{ proxy: { http: { url: 'socks5://proxy:1080' } } }, ['invalid proxy.http.url']],
    [
      { proxy: { http: { url: 'http://[fd00::1]:3128' }, noProxy: ['a,b'] } },
      ['invalid proxy.noProxy.0'],
    ],
    [{ proxy: PROXY, env: { HTTPS_PROXY: 'http://p:1' } }, ['conflict env.HTTPS_PROXY']],
    [{ proxy: { noProxy: ['a'] }, env: { HTTPS_PROXY: 'http://p:1' } }, []],
    [
      {
        ca: CA,
        pod: {
          spec: {
            containers: [{ name: 'runner', env: [{ name: 'NODE_EXTRA_CA_CERTS', value: '/x' }] }],
          },
        },
      },
      ['conflict pod.spec.containers: the variable NODE_EXTRA_CA_CERTS of the container runner'],
    ],
    [{ ca: {} }, ['conflict ca']],
    [{ ca: { ...CA, secretKeyRef: { name: 's', key: 'k' } } }, ['conflict ca']],
    [{ ca: { configMapKeyRef: { name: 'a', key: '../x' } } }, ['invalid ca.configMapKeyRef.key']],
  ])('%j', (input, errors) => {
    expect(refused(input)).toEqual(errors);
  });
});

describe('certificate authorities', () => {
  test.each([
    [
      'a ConfigMap',
      CA,
      { configMap: { name: 'acme-ca', items: [{ key: 'root.pem', path: 'ca.crt' }] } },
    ],
    [
      'a Secret',
      { secretKeyRef: { name: 'acme-ca', key: 'root.pem' } },
      { secret: { secretName: 'acme-ca', items: [{ key: 'root.pem', path: 'ca.crt' }] } },
    ],
  ])('from %s become a file, which each program finds by its own variable', (_what, ca, source) => {
    const { containers, volumes } = podOf({ ca }).spec!;
    expect(volumes).toContainEqual({ name: 'holdfast-ca', ...source });
    expect(containers[0]!.volumeMounts).toContainEqual({
      name: 'holdfast-ca',
      mountPath: '/holdfast-ca',
      readOnly: true,
    });
    expect(containers[0]!.env).toEqual(
      expect.arrayContaining(
        ['NODE_EXTRA_CA_CERTS', 'SSL_CERT_FILE', 'GIT_SSL_CAINFO'].map((name) => ({
          name,
          value: '/holdfast-ca/ca.crt',
        })),
      ),
    );
  });

  test('apply to the runner, not to the supervisor', () => {
    const { env = [] } = podOf({ ca: CA }, { supervisor: { image: 'supervisor:1' } }).spec!
      .containers[0]!;
    expect(
      env.filter(({ value }) => value === '/holdfast-ca/ca.crt').map(({ name }) => name),
    ).toEqual([
      'HOLDFAST_CHILD_ENV_NODE_EXTRA_CA_CERTS',
      'HOLDFAST_CHILD_ENV_SSL_CERT_FILE',
      'GIT_SSL_CAINFO',
    ]);
  });
});

test('the pod policy checks the Secrets, and outsiders get none', () => {
  const judge = (input: object, policy: object): string[] => {
    const request = requestOf(input);
    return policyViolations(
      toPolicyInput(podOf(input), request, 'ci'),
      podPolicySchema.parse(policy),
      {
        images: ['runner:1'],
        namespaces: ['ci'],
      },
    );
  };
  const input = { proxy: PROXY, ca: { secretKeyRef: { name: 'acme-ca', key: 'root.pem' } } };
  expect(judge(input, {})).toEqual(
    expect.arrayContaining([
      expect.stringContaining('the Secret "proxy-login" is not allowed by "secrets"'),
      expect.stringContaining('the Secret "acme-ca" is not allowed by "secrets"'),
    ]),
  );
  expect(judge(input, { secrets: ['proxy-login', 'acme-ca'] })).toEqual([]);
  expect(judge({ ...input, untrusted: true }, { secrets: ['*'] })).not.toEqual([]);
});

test('settings that need a pod are rejected for processes', () => {
  expect(processErrors(requestOf({ proxy: PROXY }), ['run'], true)).toEqual([
    expect.stringMatching(/^proxy, ca: are put into pods/),
  ]);
});
