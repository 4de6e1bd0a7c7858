import { expect, test } from '@jest/globals';
import type { OwnedObject } from '../../../core/sweep/ownedObject.ts';
import { evaluateOtherTemporal } from '../../../worker/checks/otherTemporalCheck.ts';
import { pod } from '../../support/sweptObjects.ts';

const podOf = (temporalNamespaceId?: string): OwnedObject =>
  pod(
    {},
    {
      identity: {
        workflowId: 'w',
        firstRunId: 'f',
        attempt: 1,
        ...(temporalNamespaceId === undefined ? {} : { temporalNamespaceId }),
      },
    },
  );

test('pods of this Temporal namespace, and those without its ID, are not reported', () => {
  expect(evaluateOtherTemporal('ci', 'own', [podOf('own'), podOf()])).toEqual([]);
});

test('each other Temporal namespace is a warning with its ID and the command', () => {
  const pods = ['own', 'a', 'b', 'a'].map(podOf);
  const findings = evaluateOtherTemporal('ci', 'own', pods);
  expect(findings.map(({ level }) => level)).toEqual(['warning', 'warning']);
  expect(
    findings.map(({ message }) => /(\d+) pods .* \(ID (\w+)\)/.exec(message)?.slice(1)),
  ).toEqual([
    ['2', 'a'],
    ['1', 'b'],
  ]);
  expect(findings.map(({ fix }) => fix?.split('--take-over ')[1])).toEqual(['a', 'b']);
});
