import { execFileSync, spawnSync } from 'node:child_process';
import { expect, test } from '@jest/globals';

const dryRun = (script: string, ...args: string[]): string[] =>
  execFileSync(`tools/release/${script}`, args, {
    encoding: 'utf8',
    env: { ...process.env, DRY_RUN: '1' },
  })
    .trim()
    .split('\n');

test('both images are built for two platforms, with SBOM and provenance, and pushed by the version', () => {
  const builds = dryRun('publishImages.sh', 'registry.example.com/acme', '0.2.0').filter((line) =>
    line.startsWith('docker buildx build '),
  );
  expect(builds).toHaveLength(2);
  for (const [index, image] of ['worker', 'supervisor'].entries()) {
    const words = builds[index]?.split(' ');
    expect(words).toEqual(
      expect.arrayContaining([
        'linux/amd64,linux/arm64',
        '--sbom=true',
        '--provenance=mode=max',
        '--push',
        `deploy/images/${image}.Dockerfile`,
        `registry.example.com/acme/holdfast-${image}:0.2.0`,
      ]),
    );
  }
});

test.each([
  ['publishImages.sh', []],
  ['publishImages.sh', ['registry.example.com/acme']],
  ['publishImages.sh', ['registry.example.com/acme', 'v0.2.0']],
  ['publishImages.sh', ['registry.example.com/acme', 'latest']],
  ['publishChart.sh', []],
])('%s %j is a usage error, and pushes nothing', (script, args) => {
  const { status, stdout } = spawnSync(`tools/release/${script}`, args, {
    encoding: 'utf8',
    env: { ...process.env, DRY_RUN: '1' },
  });
  expect({ status, stdout }).toEqual({ status: 2, stdout: '' });
});
