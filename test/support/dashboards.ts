/** The files in deploy/ for Prometheus and Grafana. */
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parse } from 'yaml';

export const DEPLOY = fileURLToPath(new URL('../../deploy', import.meta.url));

export interface Alert {
  readonly alert: string;
  readonly expr: string;
  readonly annotations: {
    readonly summary: string;
    readonly description: string;
    readonly runbook_url: string;
  };
}

interface Dashboard {
  readonly uid: string;
  readonly title: string;
  readonly panels: readonly {
    readonly title: string;
    readonly targets: readonly { readonly expr: string; readonly legendFormat: string }[];
  }[];
}

export function shippedAlerts(): Alert[] {
  const { groups } = parse(readFileSync(`${DEPLOY}/prometheus/rules.yaml`, 'utf8')) as {
    groups: { rules: Alert[] }[];
  };
  return groups.flatMap(({ rules }) => rules);
}

export function shippedDashboards(): Dashboard[] {
  return readdirSync(`${DEPLOY}/grafana`).map(
    (file) => JSON.parse(readFileSync(`${DEPLOY}/grafana/${file}`, 'utf8')) as Dashboard,
  );
}

/** Every query, with Grafana's variables as it would fill them in. */
export function shippedQueries(): string[] {
  const shown = shippedDashboards().flatMap(({ panels }) =>
    panels.flatMap(({ targets }) => targets.map(({ expr }) => expr)),
  );
  return [...shippedAlerts().map(({ expr }) => expr), ...shown].map((query) =>
    query.replaceAll('$__rate_interval', '2m').replaceAll('$set', 'linux'),
  );
}

/** Names of metrics in a query, as they are before Prometheus splits a histogram. */
export function metricsIn(query: string): string[] {
  return [
    ...query.matchAll(
      /\b((?:holdfast|temporal|process|nodejs)_\w+?)(?:_bucket|_count|_sum)?(?=[{[\s)]|$)/g,
    ),
  ].map(([, name = '']) => name);
}
