/** Prometheus' own tool reads the alerts and every query of the dashboards, and plays each alert where it must fire and where it must not. */
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, expect, test } from '@jest/globals';
import { parse } from 'yaml';
import { ComponentUnavailableError } from '../../tools/lab/lab.ts';
import { DEPLOY, shippedAlerts, shippedQueries } from '../support/dashboards.ts';
import { describeIf } from '../support/lab.ts';

const PLAYED = fileURLToPath(new URL('alerts.rules.yaml', import.meta.url));

interface Played {
  readonly alertname: string;
  readonly exp_alerts: readonly unknown[];
}

/** @throws Error with what it said, when it finds fault */
const promtool = async (...args: string[]): Promise<string> =>
  (await promisify(execFile)('promtool', args)).stdout;

async function findPromtool(): Promise<void> {
  try {
    await promtool('--version');
  } catch (error) {
    throw new ComponentUnavailableError(
      'promtool',
      "promtool is not here: install Debian's package prometheus",
      error,
    );
  }
}

await describeIf('Prometheus', findPromtool, {}, () => {
  const folder = mkdtempSync(join(tmpdir(), 'hf-promtool-'));
  afterAll(() => rmSync(folder, { recursive: true }));

  test('accepts the alerts', async () => {
    expect(await promtool('check', 'rules', `${DEPLOY}/prometheus/rules.yaml`)).toContain(
      `${shippedAlerts().length} rules found`,
    );
  });

  test('evaluates each alert, firing and silent', async () => {
    expect(await promtool('test', 'rules', PLAYED)).toContain('SUCCESS');
    const { tests } = parse(readFileSync(PLAYED, 'utf8')) as {
      tests: { alert_rule_test: Played[] }[];
    };
    const played = tests.flatMap(({ alert_rule_test: each }) => each);
    const firing = new Set(
      played
        .filter(({ exp_alerts: alerts }) => alerts.length > 0)
        .map(({ alertname }) => alertname),
    );
    expect([...firing].toSorted()).toEqual(
      shippedAlerts()
        .map(({ alert }) => alert)
        .toSorted(),
    );
  });

  test("accepts each query of the dashboards, with values for Grafana's variables", async () => {
    const file = join(folder, 'queries.yaml');
    const queries = [...new Set(shippedQueries())];
    writeFileSync(
      file,
      JSON.stringify({
        groups: [
          {
            name: 'queries',
            rules: queries.map((expr, index) => ({ record: `query_${index}`, expr })),
          },
        ],
      }),
    );
    expect(await promtool('check', 'rules', file)).toContain(`${queries.length} rules found`);
    writeFileSync(
      file,
      JSON.stringify({
        groups: [{ name: 'queries', rules: [{ record: 'query', expr: 'sum by (set (up)' }] }],
      }),
    );
    await expect(promtool('check', 'rules', file)).rejects.toThrow(/parse error/);
  });
});
