/** A report to the CI server: when it is tried again, when it is given up, and for how long it sends. */
import { describe, expect, test } from '@jest/globals';
import { MockActivityEnvironment } from '@temporalio/testing';
import type { ApplicationFailure } from '@temporalio/common';
import { admitReport } from '../../../activities/job/admitReport.ts';
import { bound } from '../../../activities/ciServers/restrictedCiServer.ts';
import { CiServerError, type ActivityPorts } from '../../../activities/ports.ts';
import { reportStatus } from '../../../activities/job/reportStatus.ts';
import type { ReportStatusInput } from '../../../core/activities/index.ts';
import type { CommitReport, ReportTaken } from '../../../core/domain/commitReport.ts';
import { FakeCiServer } from '../../support/fakeCiServer.ts';

const COMMIT = '6dcb09b5b57875f334f61aebed695e2e4193db5e';
const INPUT: ReportStatusInput = {
  credential: 'default',
  scope: { kind: 'repository', name: 'acme/web' },
  commit: COMMIT,
  context: 'unit',
  run: 'job-group:unit:acme/web:main:push:3',
  state: 'running',
  at: '2026-11-22T10:00:00.000Z',
  description: 'Running.',
  details: [],
};
const portsOf = (ci: FakeCiServer, temporalUi?: string): ActivityPorts =>
  ({
    ciServers: ci,
    ...(temporalUi === undefined ? {} : { temporalUi }),
  }) as unknown as ActivityPorts;

async function report(
  ci: FakeCiServer,
  info: object = {},
  temporalUi?: string,
): Promise<ReportTaken> {
  return await new MockActivityEnvironment({ startToCloseTimeoutMs: 60_000, ...info }).run(
    async () => await reportStatus(portsOf(ci, temporalUi), INPUT),
  );
}

/** How a try ends whose like has been refused so often before. */
async function failureOf(error: Error, before: number): Promise<ApplicationFailure> {
  const ci = new FakeCiServer();
  ci.script.push({ method: 'report', answer: error });
  const kind = error instanceof CiServerError ? error.kind : '';
  return await report(ci, { heartbeatDetails: { refusals: { [kind]: before } } }).then(
    () => {
      throw new Error('it was taken');
    },
    (failed: unknown) => failed as ApplicationFailure,
  );
}

test("its context is ours, whoever asks, and it links to the run's page", async () => {
  const ci = new FakeCiServer();
  expect(await report(ci, {}, 'https://temporal.example.com')).toEqual({});
  const { credential: _named, ...told } = INPUT;
  expect(ci.reports).toEqual([
    {
      ...told,
      context: 'holdfast/unit',
      link: 'https://temporal.example.com/namespaces/test/workflows/job-group%3Aunit%3Aacme%2Fweb%3Amain%3Apush%3A3',
    },
  ]);
  await report(ci);
  expect(ci.reports[1]).not.toHaveProperty('link');
});

describe('a refusal', () => {
  const refused = (
    kind: CiServerError['kind'],
    status: number | undefined,
    retryAfterMs?: number,
  ): CiServerError => new CiServerError(kind, 'no', { status, retryAfterMs });

  test.each<[what: string, error: CiServerError, before: number, expected: object]>([
    [
      '422: the commit may be too new',
      refused('rejected', 422),
      0,
      { nonRetryable: false, nextRetryDelay: 2_000 },
    ],
    ['422 … still', refused('rejected', 422), 3, { nonRetryable: false, nextRetryDelay: 16_000 }],
    [
      '422 for the sixth time',
      refused('rejected', 422),
      5,
      { nonRetryable: true, type: 'CiServerRejected' },
    ],
    ['403', refused('credentials', 403), 0, { nonRetryable: false, nextRetryDelay: 2_000 }],
    [
      '403 for the sixth time',
      refused('credentials', 403),
      5,
      { nonRetryable: true, type: 'CredentialsRefused' },
    ],
    [
      '404 for the sixth time',
      refused('credentials', 404),
      5,
      { nonRetryable: true, type: 'CredentialsRefused' },
    ],
    [
      '401, whenever: a token that is rotated',
      refused('credentials', 401),
      99,
      { nonRetryable: false, nextRetryDelay: 60_000 },
    ],
    [
      'a secret that is not there, whenever',
      refused('credentials', undefined),
      99,
      { nonRetryable: false, nextRetryDelay: 60_000 },
    ],
    [
      'a rate limit, whenever',
      refused('rate_limited', 403, 90_000),
      99,
      { nonRetryable: false, nextRetryDelay: 90_000 },
    ],
    [
      'a server that is away, whenever',
      refused('unavailable', 503),
      99,
      { nonRetryable: false, nextRetryDelay: 60_000 },
    ],
  ])('%s', async (_what, error, before, expected) => {
    expect(await failureOf(error, before)).toMatchObject(expected);
  });
});

test('it sends within three quarters of its time, and not longer', async () => {
  class SilentCiServer extends FakeCiServer {
    override async reportStatus(_report: CommitReport, signal?: AbortSignal): Promise<ReportTaken> {
      return await new Promise((_, reject) =>
        signal?.addEventListener('abort', () => reject(signal.reason as Error)),
      );
    }
  }
  const began = performance.now();
  await expect(report(new SilentCiServer(), { startToCloseTimeoutMs: 400 })).rejects.toMatchObject({
    type: 'CiServerUnavailable',
    nonRetryable: false,
    message: expect.stringContaining(COMMIT),
  });
  expect(performance.now() - began).toBeGreaterThan(290);
});

test('a cancellation lets no request go: it is heard out', async () => {
  const ci = new FakeCiServer();
  const held = Promise.withResolvers<void>();
  ci.reportHeld = held.promise;
  const environment = new MockActivityEnvironment({ startToCloseTimeoutMs: 60_000 });
  const reported = environment.run(async () => await reportStatus(portsOf(ci), INPUT));
  environment.cancel();
  held.resolve();
  expect(await reported).toEqual({});
  expect(ci.reports).toHaveLength(1);
});

describe('where a job is reported', () => {
  const job = { name: 'unit', repository: 'acme/web' };

  test.each<
    [
      what: string,
      job: { name: string; repository: string; credential?: string },
      commit: string,
      expected: object,
    ]
  >([
    [
      'to its repository, by the default credential',
      job,
      COMMIT,
      { credential: 'default', scope: { kind: 'repository', name: 'acme/web' }, name: 'unit' },
    ],
    ['SHA-256', job, 'a'.repeat(64), { name: 'unit' }],
    [
      'a name that is none',
      { ...job, name: 'a b' },
      COMMIT,
      { refused: expect.stringMatching(/^name must consist of/) },
    ],
    [
      'a repository that is none',
      { ...job, repository: '../web' },
      COMMIT,
      { refused: 'repository must be "owner/repo"' },
    ],
    [
      'a credential that the worker does not have',
      { ...job, credential: 'other' },
      COMMIT,
      { refused: expect.stringMatching(/^unknown credential "other".*report: false/) },
    ],
    [
      'an abbreviation',
      job,
      '6dcb09b',
      { refused: expect.stringMatching(/^6dcb09b is an abbreviation/) },
    ],
  ])('%s', (_what, asked, commit, expected) => {
    expect(admitReport(portsOf(new FakeCiServer()), { job: asked, commit })).toMatchObject(
      expected,
    );
  });

  test('a credential is refused where it is not for the repository, at admission and by the call', async () => {
    const ci = new FakeCiServer();
    const main = bound(ci, 'default', { scopes: ['acme'] });
    const ports = { ciServers: { get: () => main } } as unknown as ActivityPorts;
    expect(
      admitReport(ports, { job: { ...job, repository: 'victim/web' }, commit: COMMIT }),
    ).toMatchObject({ refused: expect.stringContaining('is not for victim/web') });
    await expect(
      main.reportStatus({ ...INPUT, scope: { kind: 'repository', name: 'victim/web' } }),
    ).rejects.toMatchObject({
      kind: 'rejected',
      message: expect.stringContaining('not for victim/web'),
    });
    expect(ci.reports).toEqual([]);
  });
});
