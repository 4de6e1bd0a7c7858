/** The CI server that the demo plays on. */
import type { RunnerInput } from '../../core/contract/index.ts';

/** A job that only one runner can take. */
export interface DemoJob {
  readonly label: string;
  readonly name: string;
  readonly command: string;
}

export interface DemoCiServer {
  readonly kind: 'github' | 'gitea';
  /** Settings of the worker. */
  readonly workerEnv: Readonly<Record<string, string>>;
  /** What every runner of the demo is started with. */
  readonly runnerInput: Partial<RunnerInput>;
  /** @returns its ID */
  queueJob(job: DemoJob): Promise<number>;
  isRunning(job: number): Promise<boolean>;
  /** Whether the job succeeded on the runner of this name, and printed this text. */
  hasSucceeded(job: number, runnerName: string, text: string): Promise<boolean>;
  /** Names of the registered runners. */
  registrations(): Promise<string[]>;
  close(): Promise<void>;
}

/** Where the worker takes deliveries of job events. */
export interface WebhookTarget {
  readonly port: number;
  readonly secret: string;
}
