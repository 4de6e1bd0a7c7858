/**
 * Temporal's JSON of histories, as `temporal workflow show --output json` and the UI write it.
 *
 * `historyToJSON` and `historyFromJSON` of @temporalio/common do the same, but only where npm has installed one copy of protobufjs for all
 * of Temporal's packages: they check `instanceof` with a class of their own copy ("type must be a Type"). Here the copy of
 * @temporalio/proto is asked for, which made the types.
 */
import { createRequire } from 'node:module';
import type { temporal } from '@temporalio/proto';

export type History = temporal.api.history.v1.IHistory;

interface ProtoJson {
  readonly toJson: (type: unknown, message: unknown) => unknown;
  readonly fromJson: (
    type: unknown,
    json: unknown,
    options: { ignoreUnknownFields: boolean },
  ) => History;
}

const fromHere = createRequire(import.meta.url);
const proto = fromHere('@temporalio/proto') as {
  temporal: { api: { history: { v1: { History: { fromObject(history: History): unknown } } } } };
};
const { patchProtobufRoot } = fromHere('@temporalio/proto/lib/patch-protobuf-root') as {
  patchProtobufRoot: (root: unknown) => { lookupType(name: string): unknown };
};
const { toJson, fromJson } = createRequire(fromHere.resolve('@temporalio/proto'))(
  'protobufjs/ext/protojson',
) as ProtoJson;
const historyType = patchProtobufRoot(proto).lookupType('temporal.api.history.v1.History');

export function historyToJson(history: History): unknown {
  return toJson(historyType, proto.temporal.api.history.v1.History.fromObject(history));
}

export function historyFromJson(json: unknown): History {
  return fromJson(historyType, json, { ignoreUnknownFields: true });
}
