import { expect, test } from '@jest/globals';
import { defaultPayloadConverter, type Payload } from '@temporalio/common';
import { TRACE_HEADER } from '../../../core/activities/index.ts';
import { senderContext } from '../../../workflows/tracing/spans.ts';

const TRACEPARENT = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01';
const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const json = (data: string): Payload => ({
  metadata: { encoding: bytes('json/plain') },
  data: bytes(data),
});

test('a header contains the span of its sender', () => {
  expect(
    senderContext({
      [TRACE_HEADER]: defaultPayloadConverter.toPayload({ traceparent: TRACEPARENT }),
    }),
  ).toMatchObject({ spanId: '00f067aa0ba902b7' });
});

test.each<[what: string, header: Payload | undefined]>([
  ['none', undefined],
  ['no JSON', json('{')],
  ['of an unknown encoding', { metadata: { encoding: bytes('binary/theirs') }, data: bytes('x') }],
  ['without an encoding', { data: bytes('x') }],
  ['null', json('null')],
  ['another type', json('7')],
  ['not recorded', json(JSON.stringify({ traceparent: TRACEPARENT.replace(/01$/, '00') }))],
])('an unreadable header is ignored: %s', (_what, header) => {
  expect(senderContext(header === undefined ? {} : { [TRACE_HEADER]: header })).toBeUndefined();
});
