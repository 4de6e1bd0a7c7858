import type { V1Pod } from '@kubernetes/client-node';
import fc from 'fast-check';
import { parseSupervisorRecord } from '../../../activities/compute/kubernetes/supervisorRecord.ts';
import { toPodView } from '../../../activities/compute/kubernetes/podView.ts';
import { STOP_REASONS, type PodView } from '../../../core/domain/pod.ts';
import {
  escapeControlCharacters,
  escapeMarkdown,
  stripControlCharacters,
} from '../../../core/domain/displayText.ts';
import {
  MAX_MESSAGE_BYTES,
  markerText,
  type EndRecordFile,
} from '../../../supervisor/records/marker.ts';
import { readOptions, UsageError } from '../../../supervisor/settings/options.ts';
import { GITHUB_RUNNER } from '../../../core/domain/runnerKinds/gitHub.ts';
import { RunnerLog } from '../../../supervisor/ciRunner/runnerLog.ts';
import { SETTINGS } from '../../../supervisor/settings/settings.ts';
import { parseStopReason } from '../../../supervisor/signals/stopReason.ts';
import { assertReadableMessage } from '../readableMessage.ts';
import { mutatedJson, mutatedText } from '../mutations.ts';
import { target } from '../target.ts';

const NOW = '2026-03-01T12:00:00Z';
const END: EndRecordFile = {
  exitCode: 0,
  signal: null,
  reason: null,
  startedAt: NOW,
  endedAt: NOW,
  job: 'completed',
};
const RECORDS = [
  END,
  {
    ...END,
    exitCode: 143,
    signal: 'SIGTERM',
    reason: 'evicted',
    job: 'interrupted',
  } as EndRecordFile,
  {
    ...END,
    exitCode: 127,
    startedAt: null,
    error: 'listen EADDRINUSE: address already in use 0.0.0.0:8078',
  },
];
const LOG = [
  '2024-01-01 00:00:00Z: Listening for Jobs\n',
  '2024-01-01 00:00:00Z: Running job: build\n',
  '2024-01-01 00:00:00Z: Job build completed with result: Succeeded\n',
];
const OPTIONS = [
  '30s',
  '1h30m',
  'SIGINT,SIGTERM@5s',
  '["./clean.sh"]',
  './clean.sh now',
  'github',
  '8078',
  '1',
  'drain',
  'process',
];

const pod = (message: string): V1Pod =>
  ({
    metadata: { name: 'a', uid: 'u', annotations: {}, creationTimestamp: NOW },
    spec: { hostNetwork: true, nodeName: 'n' },
    status: {
      phase: 'Failed',
      containerStatuses: [
        {
          name: 'runner',
          state: {
            terminated: { exitCode: 1, reason: 'Error', message, startedAt: NOW, finishedAt: NOW },
          },
        },
      ],
      initContainerStatuses: [{ name: 'prepare', state: { terminated: { exitCode: 1, message } } }],
    },
  }) as unknown as V1Pod;

export const messages = target(
  'messages',
  "what a pod's job can write: termination messages and supervisor records, log lines, stop reasons; the supervisor's options",
  () => ({
    inputs: fc.record({
      message: fc.oneof(
        mutatedJson(RECORDS).map((value) => JSON.stringify(value) ?? ''),
        mutatedText(RECORDS.map(markerText), [
          '{',
          '}',
          '"',
          '\\u0000',
          '"reason":',
          '"exitCode":',
        ]),
      ),
      error: mutatedText(['', 'spawn ./run.sh ENOENT']),
      log: fc.array(mutatedText(LOG, ['\n', '\r', 'Job ', ' completed with result: ', ': ']), {
        maxLength: 4,
      }),
      option: fc.tuple(
        fc.constantFrom(...SETTINGS.map(({ env }) => env)),
        mutatedText(OPTIONS, [',', '@', '[', ']', '"', 'SIGTERM', 'h', 'ms', '.']).map((value) =>
          value.slice(0, 300),
        ),
      ),
    }),
    run({ message, error, log, option: [name, value] }) {
      // The kubelet keeps no more of it.
      const view = toPodView(pod(message.slice(0, 4_096)), NOW);
      const { exit } = view;
      for (const text of [message, error, ...log]) assertPlainText(text);
      if (!view.ended) throw new Error('an end that a message hides');
      // With network access to its node, a record can claim that the runner never started. Then it
      // has no end.
      if (exit !== undefined) assertParsed(exit);
      const written = markerText({ ...END, exitCode: 127, error });
      if (
        Buffer.byteLength(written) > MAX_MESSAGE_BYTES ||
        parseSupervisorRecord(written)?.exitCode !== 127
      )
        throw new Error(`a record that cannot be read back: ${written}`);
      const lines = new RunnerLog(GITHUB_RUNNER.log);
      for (const part of log) lines.read(Buffer.from(part));
      parseStopReason(message);
      try {
        readOptions(['run.sh'], { [name]: value });
      } catch (problem) {
        if (!(problem instanceof UsageError)) throw problem;
        for (const each of problem.problems) assertReadableMessage(each, name);
      }
    },
  }),
);

function assertParsed({ code, message, record }: NonNullable<PodView['exit']>): void {
  if (!Number.isInteger(code) || code < 0 || code > 255) throw new Error(`exit code ${code}`);
  if (message !== undefined && typeof message !== 'string')
    throw new Error(`a message that is no text: ${JSON.stringify(message)}`);
  if (record?.reason !== undefined && !STOP_REASONS.includes(record.reason))
    throw new Error(`reason ${String(record.reason)}`);
}

/** On a terminal, in a log and in Markdown: one line, and nothing in it has a meaning. */
function assertPlainText(text: string): void {
  const shown = [stripControlCharacters(text), escapeControlCharacters(text), escapeMarkdown(text)];
  // oxlint-disable-next-line no-control-regex -- that there is none is the point
  if (shown.some((each) => /[\u0000-\u001F\u007F-\u009F\u2028\u2029]/.test(each)))
    throw new Error(`a control character in ${JSON.stringify(shown)}`);
  if (/[\\`*_{}[\]<>|~&$]/.test(escapeMarkdown(text).replaceAll(/\\[\\`*_{}[\]<>|~&$]/g, '')))
    throw new Error(`Markdown in ${escapeMarkdown(text)}`);
}
