/** Reads the text format of Prometheus: https://prometheus.io/docs/instrumenting/exposition_formats/. Pure. */

/** One sample of a metric. */
export interface Sample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** Parses the samples of a text. */
export function parseMetrics(text: string): Sample[] {
  return text.split('\n').flatMap((line) => {
    const match = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)/.exec(line);
    if (line.startsWith('#') || !match) return [];
    const labels = Object.fromEntries(
      [...(match[2] ?? '').matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)].map(
        ([, key, value]) => [key, value] as [string, string],
      ),
    );
    return [{ name: match[1] ?? '', labels, value: Number(match[3]) }];
  });
}

/** Returns the sum of the samples with this name and all these label values. */
export function sum(
  samples: readonly Sample[],
  name: string,
  labels: Readonly<Record<string, string>> = {},
): number {
  return samples
    .filter(
      (sample) =>
        sample.name === name &&
        Object.entries(labels).every(([key, value]) => sample.labels[key] === value),
    )
    .reduce((total, { value }) => total + value, 0);
}
