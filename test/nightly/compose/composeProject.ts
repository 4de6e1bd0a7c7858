import { until } from '../../support/until.ts';
import type { Engine } from './engine.ts';
import { progress } from './tell.ts';

/** PostgreSQL, its schema and a server come one after another, on a machine that may be slow; ms. */
const UP_MS = 180_000;

interface Container {
  readonly Service: string;
  readonly Name: string;
  readonly State: string;
  readonly Health: string;
  readonly ExitCode: number;
}

/** docker-compose.yml with one profile, on an engine. */
export class ComposeProject {
  readonly profile: string;
  readonly #engine: Engine;
  readonly #env: Readonly<Record<string, string>>;
  readonly #told = new Map<string, string>();

  constructor(engine: Engine, profile: string, env: Readonly<Record<string, string>>) {
    this.#engine = engine;
    this.profile = profile;
    this.#env = env;
  }

  /** @returns what it printed @throws Error with what it printed, where it fails */
  async compose(...args: string[]): Promise<string> {
    return await this.#engine.compose(this.#env, '--profile', this.profile, ...args);
  }

  async up(): Promise<void> {
    let failed = false;
    const up = this.compose('up', '--detach', '--no-build', '--pull', 'never').catch(
      (error: unknown) => {
        failed = true;
        throw error;
      },
    );
    await Promise.all([up, this.untilUp(() => failed)]);
  }

  /** Until all that has a check is healthy, and all one-shot services have succeeded, or it is in vain; tells each change on the way. */
  async untilUp(inVain: () => boolean = () => false): Promise<void> {
    let seen: Container[] = [];
    const waitingFor = (): string =>
      seen
        .filter((each) => !isAsWanted(each))
        .map((each) => `${each.Service} is ${stateOf(each)}`)
        .join(', ');
    const isUp = async (): Promise<boolean> => {
      seen = await this.containers();
      for (const each of seen) this.#tell(each);
      return inVain() || (seen.length > 1 && seen.every(isAsWanted));
    };
    await until(`profile ${this.profile} to be healthy`, isUp, waitingFor, UP_MS);
  }

  #tell(container: Container): void {
    const state = stateOf(container);
    if (this.#told.get(container.Service) === state) return;
    this.#told.set(container.Service, state);
    progress(`${this.profile}: ${container.Service} is ${state}`);
  }

  async containers(): Promise<Container[]> {
    const lines = (await this.compose('ps', '--all', '--format', 'json'))
      .split('\n')
      .filter((line) => line !== '');
    return lines.map((line) => JSON.parse(line) as Container);
  }

  /** SIGKILL to the service's first process, from outside: to the engine it has crashed, and is started again. */
  async kill(service: string): Promise<void> {
    const { Name: name = '' } =
      (await this.containers()).find(({ Service }) => Service === service) ?? {};
    const inspect = async (): Promise<{ Pid: number; StartedAt: string }> =>
      JSON.parse(await this.#engine.docker('inspect', '--format', '{{json .State}}', name)) as {
        Pid: number;
        StartedAt: string;
      };
    const before = await inspect();
    process.kill(before.Pid, 'SIGKILL');
    progress(`${this.profile}: ${service} was killed`);
    await until(`${service} to be started again`, async () => {
      const { Pid, StartedAt } = await inspect();
      return Pid !== 0 && StartedAt !== before.StartedAt;
    });
  }

  async down(): Promise<void> {
    await this.compose('down', '--volumes', '--timeout', '20');
    this.#told.clear();
  }

  /** Containers, networks and volumes that the engine has, which is nobody else's. */
  async left(): Promise<string[]> {
    const lists = await Promise.all(
      [
        ['ps', '--all'],
        ['network', 'ls', '--filter', 'type=custom'],
        ['volume', 'ls'],
      ].map(async (list) => await this.#engine.docker(...list, '--format', '{{json .}}')),
    );
    return lists.flatMap((list) => list.split('\n').filter((line) => line !== ''));
  }

  /** What every container is like; of those that are not as they should be, and of the worker, what its check and itself have said last. */
  async explain(): Promise<string> {
    const seen = await this.containers();
    const shown = seen.filter(
      (each) => each.State !== 'created' && (!isAsWanted(each) || each.Service === 'worker'),
    );
    const told = await Promise.all(
      shown.map(
        async (each) =>
          `--- ${each.Service}, which is ${stateOf(each)}, has said last:\n${await this.#lastWords(each)}`,
      ),
    );
    return `${seen.map((each) => `${each.Service} is ${stateOf(each)}\n`).join('')}${told.join('')}`;
  }

  async #lastWords({ Service, Name }: Container): Promise<string> {
    const logs = await this.compose('logs', '--no-log-prefix', '--tail', '20', Service);
    const health = JSON.parse(
      await this.#engine.docker('inspect', '--format', '{{json .State.Health}}', Name),
    ) as { Log: { ExitCode: number; Output: string }[] } | null;
    const check = health?.Log.at(-1);
    return [
      ...logs.trimEnd().split('\n'),
      ...(check === undefined
        ? []
        : [`its check ended with ${check.ExitCode}: ${check.Output.trim()}`]),
      '',
    ]
      .map((line) => line.slice(0, 300))
      .join('\n');
  }
}

function stateOf({ State, Health, ExitCode }: Container): string {
  if (State === 'exited') return ExitCode === 0 ? 'done' : `ended with status ${ExitCode}`;
  return Health === '' ? State : Health;
}

const isAsWanted = ({ State, Health, ExitCode }: Container): boolean =>
  State === 'exited' ? ExitCode === 0 : State === 'running' && Health === 'healthy';
