import { expect, test } from '@jest/globals';
import type { CiServer } from '../../activities/ports.ts';
import type { Scope } from '../../core/domain/ciServer.ts';
import type { CommitReport } from '../../core/domain/commitReport.ts';
import { ciServerError } from './ciServers.ts';

/** What a CI server shows of a run: its status, and the check run where it has one. Null: none. */
export interface ShownRun {
  readonly context: string;
  readonly state: string;
  readonly description: string;
  readonly link: string | null;
  readonly checks: {
    readonly conclusion: string;
    readonly title: string;
    readonly text: string;
    readonly link: string | null;
  }[];
}

export interface ReportFixture {
  readonly server: CiServer;
  /** What is shown of a commit, by context; from the CI server itself. */
  shown(repository: string, commit: string): Promise<ShownRun[]>;
}

export const COMMIT = '6dcb09b5b57875f334f61aebed695e2e4193db5e';

/** A run under way. @param scope - of an organization: its repository `web` */
export function commitReport(scope: Scope, more: Partial<CommitReport> = {}): CommitReport {
  const repository: Scope = {
    kind: 'repository',
    name: scope.kind === 'repository' ? scope.name : `${scope.name}/web`,
  };
  return {
    scope: repository,
    commit: COMMIT,
    context: 'holdfast/unit',
    run: 'job-group:unit:acme/web:main:pr-7:3',
    state: 'running',
    at: '2026-11-22T10:00:00.000Z',
    description: 'Running.',
    details: [],
    ...more,
  };
}

/** What every adapter must do with the runs of jobs; its statuses are GitHub's four. */
export function reportContract(scope: Scope, fixture: () => ReportFixture): void {
  const report = async (more: Partial<CommitReport> = {}): Promise<unknown> =>
    await fixture().server.reportStatus(commitReport(scope, more));
  const shown = async (): Promise<ShownRun[]> => await fixture().shown(scope.name, COMMIT);

  test.each<[CommitReport['state'], CommitReport['cause'], string, string]>([
    ['queued', undefined, 'pending', 'queued'],
    ['running', undefined, 'pending', 'in_progress'],
    ['succeeded', undefined, 'success', 'success'],
    ['failed', undefined, 'failure', 'failure'],
    ['errored', 'pending_timeout', 'error', 'action_required'],
    ['aborted', 'cancelled', 'error', 'cancelled'],
    ['aborted', 'run_timeout', 'error', 'timed_out'],
  ])(
    'a run that is %s (%s) is shown so, with its words and its link',
    async (state, cause, status, conclusion) => {
      const link = 'https://temporal.example.com/namespaces/default/workflows/x';
      expect(
        await report({
          state,
          ...(cause === undefined ? {} : { cause }),
          description: 'Words.',
          details: ['test unit: failed'],
          link,
        }),
      ).toEqual({});
      const [run, ...others] = await shown();
      expect(others).toEqual([]);
      expect(run).toMatchObject({
        context: 'holdfast/unit',
        state: status,
        description: 'Words.',
        link,
      });
      for (const check of run?.checks ?? [])
        expect(check).toEqual({
          conclusion,
          title: 'Words.',
          text: '```text\nWords.\ntest unit: failed\n```',
          link,
        });
    },
  );

  test('a run is one thing from its beginning to its end, however often each is told; another run of the commit is another', async () => {
    for (const state of ['queued', 'running', 'running', 'succeeded', 'succeeded'] as const)
      await report({ state });
    expect(await shown()).toMatchObject([
      {
        state: 'success',
        checks: (await shown())[0]?.checks.map(() => ({ conclusion: 'success' })),
      },
    ]);
    const one = (await shown())[0]?.checks.length ?? 0;
    expect(one).toBeLessThanOrEqual(1);
    await report({ run: 'job-group:unit:acme/web:main:pr-7:4', state: 'failed' });
    const [run, ...others] = await shown();
    expect(others).toEqual([]);
    expect(run?.state).toBe('failure');
    expect(run?.checks.map(({ conclusion }) => conclusion)).toEqual(
      one === 1 ? ['success', 'failure'] : [],
    );
    await report({ context: 'holdfast/e2e', run: 'job-group:e2e:acme/web:main:pr-7:1' });
    expect((await shown()).map(({ context }) => context)).toEqual([
      'holdfast/unit',
      'holdfast/e2e',
    ]);
  });

  test('what somebody has written is text there, and in its limits', async () => {
    const description = `Failed. ${'**bold** <img src=x> @acme/all #1 ``` \u202Eevil\u001B[31m\n\n# title 🪗 '.repeat(20)}`;
    await report({
      state: 'failed',
      description,
      details: Array.from({ length: 100 }, (_, at) => `test ${at}: \`\`\`\`\n${'x'.repeat(5_000)}`),
    });
    const [run] = await shown();
    expect(run?.description).toMatch(
      /^Failed\. \*\*bold\*\* <img src=x> @acme\/all #1 ``` evil\[31m # title \uFFFD .*…$/,
    );
    expect(run?.description.length).toBeLessThanOrEqual(140);
    for (const { title, text } of run?.checks ?? []) {
      expect(title).not.toMatch(/\p{Cc}|\u202E/u);
      expect(text.length).toBeLessThanOrEqual(65_535);
      const [first = '', ...lines] = text.split('\n');
      expect(first).toBe('`````text');
      expect(lines.findIndex((line) => /^\s*`{5,}\s*$/.test(line))).toBe(lines.length - 1);
    }
  });

  test('a commit that is not there is a refusal that stands', async () => {
    expect(await ciServerError(report({ commit: 'abc' }))).toMatchObject({
      kind: 'rejected',
      status: 422,
    });
  });
}
