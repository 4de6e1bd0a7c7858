import { execFile } from 'node:child_process';
import { mkdtemp, readdir, realpath, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { makeSupervisorFolder } from '../../../deploy/images/supervisorFolder.ts';
import type { FigureInfo, Figures, LocalBenchmark, Measured } from '../benchmark.ts';
import { measureInjection } from '../injection.ts';
import { sample, type Sample } from '../processes/containedProcess.ts';
import { percentile, roundTo } from '../statistics.ts';

/** Number of runs for each pod with and each pod without the supervisor. A pod takes seconds. */
const RUNS_PER_POD = 5;
const MIN_PODS = 5;

/** Commands that start the program. */
const VARIANTS = {
  direct: 'the program alone',
  tini: 'tini alone',
  supervisor: 'tini and the supervisor',
  injected: 'tini and the supervisor, from the directory that is copied into pods',
} as const;
type Variant = keyof typeof VARIANTS;

export const supervisor: LocalBenchmark = {
  name: 'supervisor',
  summary:
    'time and memory that the supervisor adds to a program, compared with tini and with the program alone; with --kubelet also the cost of its injection into a pod (one pod for five runs)',
  defaultRuns: 50,
  figures: {
    runs: { unit: 'runs', what: 'runs of each variant, in turn' },
    ...variantFigures(),
    'injection.pods': {
      unit: 'pods',
      what: 'pods with the supervisor injected, and as many without it',
      optional: true,
    },
    'injection.folderMB': {
      unit: 'MB',
      what: 'size of the directory',
      budget: { kind: 'max', limit: 120 },
      optional: true,
    },
    'injection.initP50Ms': {
      unit: 'ms',
      what: 'duration of the init container that copies the directory, median',
      optional: true,
    },
    'injection.initP95Ms': {
      unit: 'ms',
      what: '… p95',
      budget: { kind: 'max', limit: 600 },
      optional: true,
    },
    'injection.noticedP50Ms': {
      unit: 'ms',
      what: "init container ended → the runner's container started, median: the kubelet checks its containers once a second",
      optional: true,
    },
    'injection.programP50Ms': {
      unit: 'ms',
      what: "container started → the program's first output, supervised, median",
      optional: true,
    },
    'injection.podP50Ms': {
      unit: 'ms',
      what: "pod created → the program's first output, supervised, median",
      optional: true,
    },
    'injection.plainPodP50Ms': { unit: 'ms', what: '… without the supervisor', optional: true },
  },

  async run({ runs, kubelet, ...options }): Promise<Measured> {
    const temporary = await mkdtemp(join(tmpdir(), 'holdfast-bench-'));
    try {
      await makeSupervisorFolder(join(temporary, 'made'));
      // Copy the directory as for a pod: resident memory of a file depends on how it was written.
      const folder = join(temporary, 'copied');
      await promisify(execFile)('cp', ['-R', join(temporary, 'made'), folder]);
      const samples = await sampleInTurn(folder, runs, options.progress);
      const measured = figuresOfAll(samples);
      const details = { program: await realpath('/bin/sh') };
      if (!kubelet) return { figures: { runs, ...measured }, details };
      const injection = await measureInjection(
        Math.max(MIN_PODS, Math.round(runs / RUNS_PER_POD)),
        options,
      );
      return {
        figures: {
          runs,
          ...measured,
          'injection.folderMB': await megabytes(folder),
          ...injection.figures,
        },
        details: { ...details, ...injection.details },
      };
    } finally {
      await rm(temporary, { recursive: true });
    }
  },
};

/** Runs all variants in each round, in changing order, so that other load affects all of them. */
async function sampleInTurn(
  folder: string,
  runs: number,
  progress: (line: string) => void,
): Promise<Map<Variant, Sample[]>> {
  const tini = [join(folder, 'tini'), '-s', '--'];
  const bundle = join(folder, 'supervisor.mjs');
  const inits: [Variant, readonly string[]][] = [
    ['direct', []],
    ['tini', tini],
    ['supervisor', [...tini, process.execPath, bundle, '--']],
    [
      'injected',
      [
        ...tini,
        join(folder, 'ld.so'),
        '--library-path',
        join(folder, 'lib'),
        join(folder, 'node'),
        bundle,
        '--',
      ],
    ],
  ];
  // As in a pod, the supervisor answers probes and writes a termination message.
  const env = {
    HOLDFAST_PROBE_PORT: '0',
    HOLDFAST_TERMINATION_LOG: join(folder, 'termination-log'),
  };
  const samples = new Map<Variant, Sample[]>(inits.map(([variant]) => [variant, []]));
  progress(`${runs} runs of each of ${inits.map(([variant]) => variant).join(', ')}`);
  for (const [, init] of inits) await sample(init, env); // reads the files from the disk
  for (let run = 0; run < runs; run++) {
    for (const index of inits.keys()) {
      const [variant, init] = inits[(index + run) % inits.length] ?? ['direct', []];
      samples.get(variant)?.push(await sample(init, env));
    }
  }
  return samples;
}

function variantFigures(): Record<string, FigureInfo> {
  const figures: Record<string, FigureInfo> = {};
  for (const [variant, what] of Object.entries(VARIANTS)) {
    figures[`variants.${variant}.startP50Ms`] = {
      unit: 'ms',
      what: `${what}: started → the program's first output, median`,
    };
    figures[`variants.${variant}.startP95Ms`] = { unit: 'ms', what: '… p95' };
    figures[`variants.${variant}.rssMiB`] = {
      unit: 'MiB',
      what: `${what}: resident memory without the program, median`,
    };
    figures[`variants.${variant}.exitP50Ms`] = {
      unit: 'ms',
      what: `${what}: SIGTERM → all processes ended, with a program that ends at once, median`,
    };
    figures[`variants.${variant}.exitP95Ms`] = { unit: 'ms', what: '… p95' };
  }
  return figures;
}

function figuresOfAll(samples: ReadonlyMap<Variant, readonly Sample[]>): Figures {
  const figures: Record<string, number> = {};
  for (const [variant, all] of samples) {
    const of = (key: keyof Sample, share: number): number =>
      roundTo(
        percentile(
          all.map((each) => each[key]),
          share,
        ),
        1,
      );
    figures[`variants.${variant}.startP50Ms`] = of('startMs', 0.5);
    figures[`variants.${variant}.startP95Ms`] = of('startMs', 0.95);
    figures[`variants.${variant}.rssMiB`] = of('rssMiB', 0.5);
    figures[`variants.${variant}.exitP50Ms`] = of('exitMs', 0.5);
    figures[`variants.${variant}.exitP95Ms`] = of('exitMs', 0.95);
  }
  return figures;
}

/** Returns the size of a directory (10^6 bytes). */
async function megabytes(folder: string): Promise<number> {
  const names = await readdir(folder, { recursive: true });
  const files = await Promise.all(names.map((name) => stat(join(folder, name))));
  return roundTo(files.reduce((sum, file) => sum + (file.isFile() ? file.size : 0), 0) / 1e6, 1);
}
