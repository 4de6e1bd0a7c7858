/** Version of the runner program, by the tag of its image. */
import type { RunnerVersionStatus } from '../contract/index.ts';
import { RUNNER_CONTAINER } from './podTemplate.ts';

/**
 * Returns the version in the tag of an image, such as `2.338.0` for
 * `ghcr.io/actions/actions-runner:2.338.0-ubuntu`.
 * @returns `undefined` if the tag contains none, as `latest` or a digest
 */
export function imageVersion(image: string): string | undefined {
  const tag = /:([^/@]+)(?:@[^/]*)?$/.exec(image)?.[1] ?? '';
  return /^v?(\d+\.\d+\.\d+)(?![\d.])/.exec(tag)?.[1];
}

/**
 * Returns the image of a template's runners.
 * @param template - template of a set, as its declaration contains it
 */
export function templateImage(template: {
  readonly image?: string;
  readonly pod?: { readonly spec?: object };
}): string | undefined {
  const { containers }: { containers?: unknown } = template.pod?.spec ?? {};
  const runner = (Array.isArray(containers) ? (containers as unknown[]) : []).find(
    (each): each is { name: string; image?: unknown } =>
      typeof each === 'object' && each !== null && 'name' in each && each.name === RUNNER_CONTAINER,
  );
  return template.image ?? (typeof runner?.image === 'string' ? runner.image : undefined);
}

/** Returns the earliest deadline of a version (ms since the epoch), or `undefined` if none is known. */
export function versionDeadlineMs(version: RunnerVersionStatus | undefined): number | undefined {
  const times = [version?.jobsUntil, version?.registrationUntil]
    .filter((time) => time !== undefined)
    .map((time) => Date.parse(time));
  return times.length === 0 ? undefined : Math.min(...times);
}

/** Time before a deadline from which it is worth a warning (ms). */
const WARN_BEFORE_MS = 7 * 24 * 3_600_000;

/**
 * Whether a version has a deadline within a week, or a past one.
 * @param now - ms since the epoch
 */
export function isDeadlineNear(version: RunnerVersionStatus | undefined, now: number): boolean {
  const deadline = versionDeadlineMs(version);
  return deadline !== undefined && deadline - now < WARN_BEFORE_MS;
}

/** Returns the version and its deadlines as text. */
export function runnerVersionText({
  version,
  jobsUntil,
  registrationUntil,
}: RunnerVersionStatus): string {
  return [
    version,
    ...(jobsUntil === undefined ? [] : [`gets jobs until ${jobsUntil}`]),
    ...(registrationUntil === undefined ? [] : [`can register until ${registrationUntil}`]),
  ].join(', ');
}
