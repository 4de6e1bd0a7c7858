/** Alerts and dashboards use existing metrics. Prometheus loads them in test/cluster/prometheus.test.ts. */
import { readFileSync } from 'node:fs';
import { expect, test } from '@jest/globals';
import {
  JOB_WORKFLOW,
  DEREGISTRATION_WORKFLOW,
  RERUN_WORKFLOW,
  RUNNER_CAUSES,
  RUNNER_OUTCOMES,
  RUNNER_WORKFLOW,
  SEARCH_ATTRIBUTES,
} from '../../core/contract/index.ts';
import {
  DEPLOY,
  metricsIn,
  shippedAlerts,
  shippedDashboards,
  shippedQueries,
} from '../support/dashboards.ts';

const configuration = readFileSync(`${DEPLOY}/../docs/configuration.md`, 'utf8');
/** Each metric of docs/configuration.md with its labels. Those of sets are in a separate table and have two. */
const DOCUMENTED = new Map(
  [...configuration.matchAll(/`(holdfast_\w+)(?:\{([\w,]+)\})?`/g)].map(([, name = '', labels]) => [
    name,
    labels?.split(',') ?? ['set', 'scope'],
  ]),
);

test('each metric is documented, with the labels that queries use', () => {
  for (const query of shippedQueries()) {
    expect(metricsIn(query)).not.toEqual([]);
    for (const name of metricsIn(query).filter((metric) => metric.startsWith('holdfast_')))
      expect([...DOCUMENTED.keys()]).toContain(name);
    for (const [, name = '', selected = ''] of query.matchAll(
      /(holdfast_\w+?)(?:_bucket|_count)?\{([^}]*)\}/g,
    )) {
      expect(DOCUMENTED.get(name)).toEqual(
        expect.arrayContaining([...selected.matchAll(/(\w+)=/g)].map(([, label]) => label)),
      );
    }
  }
});

test('labels of a grouping and of a legend are labels of the metric', () => {
  const own = ['le', 'instance', 'operation', 'task_queue', 'worker_type'];
  for (const { panels } of shippedDashboards()) {
    for (const { expr, legendFormat } of panels.flatMap(({ targets }) => targets)) {
      const labels = [...metricsIn(expr).flatMap((name) => DOCUMENTED.get(name) ?? []), ...own];
      const grouped = [...expr.matchAll(/by \(([^)]*)\)/g)].flatMap(([, list = '']) =>
        list.split(', '),
      );
      expect(labels).toEqual(expect.arrayContaining(grouped));
      for (const [, label = ''] of legendFormat.matchAll(/\{\{(\w+)\}\}/g))
        expect(grouped).toContain(label);
    }
  }
});

test('outcomes of runners exist', () => {
  for (const query of shippedQueries())
    for (const [, outcome = ''] of query.matchAll(
      /holdfast_(?:jobs|runners)_total\{outcome!?="(\w+)"/g,
    ))
      expect(RUNNER_OUTCOMES).toContain(outcome);
});

test('the Temporal queries that alerts suggest are valid', () => {
  const workflows: string[] = [
    JOB_WORKFLOW,
    RUNNER_WORKFLOW,
    DEREGISTRATION_WORKFLOW,
    RERUN_WORKFLOW,
  ];
  const attributes: string[] = Object.values(SEARCH_ATTRIBUTES).map(({ name }) => name);
  const asked = shippedAlerts().flatMap(({ annotations }) => [
    ...annotations.description.matchAll(
      /--query "WorkflowType = '(\w+)'(?: AND (\w+) = '(\w+)')?"/g,
    ),
  ]);
  expect(asked.length).toBeGreaterThan(2);
  for (const [, type = ''] of asked) expect(workflows).toContain(type);
  const narrowed = asked.filter(([, , attribute]) => attribute !== undefined);
  expect(narrowed.length).toBeGreaterThan(0);
  for (const [, , attribute = '', value] of narrowed) {
    expect(attributes).toContain(attribute);
    expect(RUNNER_OUTCOMES).toContain(value);
  }
});

test('each alert links to its heading in docs/troubleshooting.md', () => {
  const page = readFileSync(`${DEPLOY}/../docs/troubleshooting.md`, 'utf8');
  for (const { alert, annotations } of shippedAlerts()) {
    expect(annotations.runbook_url).toBe(
      `https://holdfast.dev/docs/troubleshooting#${alert.toLowerCase()}`,
    );
    expect(page).toContain(`\n### ${alert}\n`);
  }
});

test('each cause has a fix in docs/troubleshooting.md', () => {
  const page = readFileSync(`${DEPLOY}/../docs/troubleshooting.md`, 'utf8');
  const causes = page.slice(page.indexOf('## Causes'), page.indexOf('## Alerts'));
  for (const cause of RUNNER_CAUSES) expect(causes).toContain(`\`${cause}\``);
});

test('dashboards have unique ids', () => {
  const uids = shippedDashboards().map(({ uid }) => uid);
  expect(new Set(uids).size).toBe(uids.length);
  expect(uids.length).toBe(5);
});
