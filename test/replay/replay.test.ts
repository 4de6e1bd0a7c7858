import { beforeAll, describe, expect, test } from '@jest/globals';
import { workflowSourceOptions } from '../../worker/plugin/workflowBundle.ts';
import { readHistories, versionFolder } from './histories.ts';
import { replayAll } from './replayAll.ts';
import { JOB_SCENARIOS } from './jobScenarios.ts';
import { SCENARIOS } from './scenarios.ts';
import { SET_SCENARIOS } from './setScenarios.ts';

const histories = readHistories();

/** Everything that a history says, the payloads decoded. */
function decoded(text: string): string {
  const words: string[] = [text];
  JSON.parse(text, (key, value: unknown) => {
    if (key === 'data' && typeof value === 'string')
      words.push(Buffer.from(value, 'base64').toString('utf8'));
    return value;
  });
  return words.join('\n');
}

describe('the histories of every version', () => {
  let results: Map<string, Error | undefined>;

  beforeAll(async () => {
    results = await replayAll(histories, await workflowSourceOptions({}));
  });

  test.each(histories.map(({ file }) => file))('%s replays', (file) => {
    expect(results.has(file)).toBe(true);
    expect(results.get(file)?.message).toBeUndefined();
  });

  test.each(Object.entries(SCENARIOS))(
    '%s is recorded',
    (name, { runs = 1, deregistration, rerun }) => {
      const files = histories.map(({ file }) => file);
      for (const file of [
        name,
        ...Array.from({ length: runs - 1 }, (_, index) => `${name}.${index + 2}`),
        ...(deregistration === undefined ? [] : [`${name}.deregistration`]),
        ...(rerun === true ? [`${name}.rerun`] : []),
      ])
        expect(files).toContain(`${versionFolder()}/${file}.json`);
    },
  );

  test.each(Object.entries(JOB_SCENARIOS))('%s is recorded', (name, { runs = 1, steps = [] }) => {
    const files = histories.map(({ file }) => file);
    for (const file of [
      name,
      ...Array.from({ length: runs - 1 }, (_, index) => `${name}.${index + 2}`),
      ...steps.map((step) => `${name}.${step}`),
    ])
      expect(files).toContain(`${versionFolder()}/${file}.json`);
  });

  test.each(Object.entries(SET_SCENARIOS))(
    '%s is recorded',
    (name, { runs = 1, records = { '': () => '' } }) => {
      const files = histories.map(({ file }) => file);
      for (const file of [
        ...Object.keys(records).map((more) => `${name}${more}`),
        ...Array.from({ length: runs - 1 }, (_, index) => `${name}.${index + 2}`),
      ])
        expect(files).toContain(`${versionFolder()}/${file}.json`);
    },
  );

  test.each(histories.map((history) => [history.file, history] as const))(
    '%s is complete, and holds no secret',
    (_file, { text, events, workflowId }) => {
      expect(events.at(-1)?.eventType).toMatch(
        /^EVENT_TYPE_WORKFLOW_EXECUTION_(COMPLETED|CANCELED|CONTINUED_AS_NEW)$/,
      );
      const words = decoded(text);
      // The payloads are read for sure: this one is in every history's input.
      expect(words).toMatch(
        /"organization":"acme"|"ciServer":"none"|"commands":"echo unit"|"repository":"acme\/web"|"set":"set-|"force":true|"runNumber":\d/i,
      );
      expect(workflowId).toMatch(/^((runner|deregistration|rerun|set)-|set-command:|job|sweep)/);
      expect(words).not.toMatch(/SECRET-TOKEN|SECRET-JIT/);
      expect(words).not.toMatch(/JITCONFIG|RUNNER_TOKEN/);
    },
  );
});
