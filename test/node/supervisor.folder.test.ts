import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { PAUSE_IMAGE, SUPERVISOR_IMAGE } from '../../tools/lab/images/definitions.ts';
import { describeWithLab } from '../support/lab.ts';
import { createTestNamespace, type TestNamespace } from '../support/pods.ts';

const SUPERVISOR = [
  '/holdfast/tini',
  '-s',
  '--',
  '/holdfast/ld.so',
  '--library-path',
  '/holdfast/lib',
  '/holdfast/node',
  '/holdfast/supervisor.mjs',
  '--',
];
const volumeMounts = [{ name: 'supervisor', mountPath: '/holdfast' }];

await describeWithLab("the supervisor's folder", { nodes: 'kubelet' }, (lab) => {
  let namespace: TestNamespace;
  beforeAll(async () => {
    namespace = await createTestNamespace(lab.kubernetes?.kubeconfig ?? '', 'folder');
  });
  afterAll(async () => {
    await namespace.remove();
  });

  test('runs in an image without a C library, as any user, read-only', async () => {
    const program = [
      'busybox find / -xdev -path /holdfast -prune -o -name "lib*.so*" -print -o -name "ld-*" -print',
      'echo "library path ${LD_LIBRARY_PATH:-none}"',
      'for pid in 1 $PPID; do echo "$pid $(busybox tr "\\0" " " </proc/$pid/cmdline)"; done',
      'echo "user $(busybox id -u)"',
      'exit 7',
    ].join('; ');
    const command = ['/bin/busybox', 'sh', '-c', program];
    await namespace.createPod(
      'bare',
      {
        image: PAUSE_IMAGE,
        command: [...SUPERVISOR, ...command],
        env: [{ name: 'PATH', value: '/bin' }],
        volumeMounts: volumeMounts.map((mount) => ({ ...mount, readOnly: true })),
      },
      {
        securityContext: { runAsUser: 12_345, runAsNonRoot: true },
        volumes: [{ name: 'supervisor', emptyDir: {} }],
        initContainers: [
          {
            name: 'supervisor',
            image: SUPERVISOR_IMAGE,
            imagePullPolicy: 'IfNotPresent',
            command: ['cp', '-R', '/opt/holdfast/.', '/holdfast/'],
            securityContext: {
              readOnlyRootFilesystem: true,
              allowPrivilegeEscalation: false,
              capabilities: { drop: ['ALL'] },
            },
            volumeMounts,
          },
        ],
      },
    );
    const pod = await namespace.waitForPod(
      'bare',
      ({ status }) => status?.phase === 'Failed' || status?.phase === 'Succeeded',
    );
    const { exitCode, message } = pod.status?.containerStatuses?.[0]?.state?.terminated ?? {};
    const lines = (await namespace.log('bare')).trimEnd().split('\n');
    const [noLibrary, tini = '', supervisor = '', user] = lines;
    expect(noLibrary).toBe('library path none'); // nor was one found
    expect(user).toBe('user 12345');
    // The supervisor knows by this that PID 1 is a tini of its own.
    const [, ownPid, own = ''] = /^(\d+) (.*)$/.exec(supervisor) ?? [];
    expect(Number(ownPid)).toBeGreaterThan(1);
    expect(own.startsWith(SUPERVISOR.slice(3).join(' '))).toBe(true);
    expect(tini).toBe(`1 ${SUPERVISOR.slice(0, 3).join(' ')} ${own}`);
    expect(exitCode).toBe(7);
    expect(JSON.parse(message ?? '')).toMatchObject({ exitCode: 7, signal: null, reason: null });
  });
});
