/** The subjects that `holdfast why` accepts, and the text of its answer. */
import { expect, test } from '@jest/globals';
import { answerLines } from '../../cli/why/answerLines.ts';
import { parseSubject, type Subject } from '../../cli/why/subject.ts';

const HOST = 'https://github.com';

test.each<[text: string, subject: Subject]>([
  ['7', { kind: 'job', jobId: '7' }],
  ['linux', { kind: 'named', name: 'linux' }],
  ['runner-linux-a', { kind: 'named', name: 'runner-linux-a' }],
  [`${HOST}/acme/app/actions/runs/1`, { kind: 'run', runId: '1', repository: 'acme/app' }],
  [
    `${HOST}/acme/app/actions/runs/1/attempts/2`,
    { kind: 'run', runId: '1', repository: 'acme/app' },
  ],
  [
    `${HOST}/acme/app/actions/runs/1/job/2?pr=3#step:4:5`,
    { kind: 'job', jobId: '2', repository: 'acme/app' },
  ],
  [
    'http://ghes.example:8080/acme/app/actions/runs/1/attempts/2/job/3/',
    { kind: 'job', jobId: '3', repository: 'acme/app' },
  ],
  [
    'http://gitea.example/acme/app/actions/runs/1/jobs/7',
    { kind: 'job', jobId: '7', repository: 'acme/app' },
  ],
])('%s', (text, subject) => {
  expect(parseSubject(text)).toEqual(subject);
});

test('labels are a list, for a job only', () => {
  expect(parseSubject('7', ' self-hosted, linux,')).toEqual({
    kind: 'job',
    jobId: '7',
    labels: ['self-hosted', 'linux'],
  });
  expect(parseSubject('7', '')).toMatchObject({ labels: [] });
  expect(() => parseSubject('linux', 'linux')).toThrow(/^--labels: /);
});

test.each([`${HOST}/acme/app/pull/7`, 'https://', `${HOST}/acme/app/actions/runs/x`])(
  '%s is not the URL of a run or job',
  (text) => {
    expect(() => parseSubject(text)).toThrow(expect.objectContaining({ code: 'usage' }));
  },
);

test('the text has every part of an answer, one per line', () => {
  const lines = answerLines({
    subject: { kind: 'job', id: '7' },
    state: 'waiting',
    causes: [{ cause: 'max', text: 'full', since: 'S', until: 'U', fix: 'F', runner: 'R' }],
    servedBy: { id: 'set-b', labels: ['linux'], because: 'rerouted', reroutedFrom: 'set-a' },
    runner: 'runner-b',
    verdict: { outcome: 'errored', cause: 'evicted', message: 'M', evidence: ['E'] },
    otherSets: [
      {
        id: 'set-c',
        labels: ['mac'],
        mismatches: ['labels'],
        missingLabels: ['linux'],
        scope: 'acme',
      },
    ],
    missing: ['X'],
    links: [{ id: 'set-b', url: 'http://ui' }],
  });
  const text = lines.join('\n');
  for (const part of [
    /^job 7: waiting$/m,
    /^Served by: +set-b \(linux\)$/m,
    /^Because: .*\(set-a\)$/m,
    /^Runner: +runner-b$/m,
    /^Cause: +max: full \(since S, until U, runner R\)$/m,
    /^Fix: +F$/m,
    /^Verdict: +errored\/evicted$/m,
    /^Message: +M$/m,
    /^Evidence: +E$/m,
    /set-c \(acme; mac\): labels, lacks linux$/m,
    /^Not known: +X$/m,
    /^Link: +http:\/\/ui$/m,
  ])
    expect(text).toMatch(part);
  expect(lines).toHaveLength(12);
});
