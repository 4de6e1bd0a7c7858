import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { PROJECT, withoutDigests, type Engine } from './engine.ts';
import { progress, say, timed } from './tell.ts';

const IMAGES = {
  worker: 'holdfast-worker:0.1.0',
  supervisor: 'holdfast-supervisor:0.1.0',
  runner: 'holdfast-runner:0.1.0',
} as const;

/** Builds what deploy/images has, and tells sizes. */
export async function buildImages(engine: Engine): Promise<void> {
  for (const [name, image] of Object.entries(IMAGES)) {
    progress(`building ${image}`);
    const dockerfile = `deploy/images/${name}.Dockerfile`;
    const { seconds } = await timed(
      async () => await engine.build(dockerfile, image, (step) => progress(`${name}: ${step}`)),
    );
    const base =
      withoutDigests(await readFile(join(PROJECT, dockerfile), 'utf8'))
        .match(/^FROM \S+/gm)
        ?.at(-1)
        ?.slice('FROM '.length) ?? '';
    const { user, size } = await inspect(engine, image);
    assert.match(user, /^[1-9]\d*$/, `${image} runs as root`);
    const own = size - (await inspect(engine, base)).size;
    say(
      `${image}: ${megabytes(size)}, ${megabytes(own)} more than ${base}; runs as user ${user}; built in ${seconds} s`,
    );
  }
}

async function inspect(engine: Engine, image: string): Promise<{ user: string; size: number }> {
  const { Config, Size } = JSON.parse(
    await engine.docker('image', 'inspect', '--format', '{{json .}}', image),
  ) as { Config: { User: string }; Size: number };
  return { user: Config.User, size: Size };
}

const megabytes = (bytes: number): string => `${Math.round(bytes / 1e6)} MB`;

/** What they are for, as nobody in particular, without capabilities and on a root that is read-only. */
export async function checkImages(engine: Engine): Promise<void> {
  const strict = [
    'run',
    '--rm',
    '--network',
    'none',
    '--read-only',
    '--cap-drop',
    'ALL',
    '--security-opt',
    'no-new-privileges',
  ];
  assert.match(
    await engine.docker(...strict, IMAGES.worker, 'holdfast', '--version'),
    /^\d+\.\d+\.\d+$/m,
  );
  // Without certificates of the system's the SDK's native part gives up before it has tried.
  const connect = `import('@temporalio/worker').then(({ NativeConnection }) => NativeConnection.connect({ address: '127.0.0.1:1', tls: true })).catch((error) => console.log(error.message))`;
  assert.match(
    await engine.docker(...strict, IMAGES.worker, 'node', '-e', connect),
    /refused/i,
    'the worker speaks no TLS',
  );
  // As a runner's pod does: the supervisor's folder, copied to a volume and run from there, in an image that has nothing.
  for (const image of [IMAGES.worker, IMAGES.supervisor]) {
    const script =
      'cp -R /opt/holdfast/. /there && /there/tini -s -- /there/ld.so --library-path /there/lib /there/node /there/supervisor.mjs -- sh -c "echo ran as $(id -u)"';
    assert.match(
      await engine.docker(
        ...strict,
        '--tmpfs',
        '/there:exec,mode=1777',
        '--entrypoint',
        'sh',
        image,
        '-c',
        script,
      ),
      /ran as 1000/,
    );
  }
  const registered = await engine.docker(
    ...strict,
    '--tmpfs',
    '/tmp',
    '--entrypoint',
    'sh',
    IMAGES.runner,
    '-c',
    'id -u; ls /home/runner/run.sh /opt/holdfast/supervisor.mjs /usr/local/bin/holdfast-runner',
  );
  assert.match(registered, /^1001\n/);
  say('images: run as nobody in particular, without capabilities, on a read-only root');
}
