/**
 * Implements `holdfast pod-policy`, which prints the worker's pod policy as objects for the API
 * server.
 */
import { stringify } from 'yaml';
import type { z } from 'zod';
import {
  admissionPolicy,
  jobPodAdmissionPolicy,
} from '../../activities/compute/kubernetes/podPolicy/admissionPolicy.ts';
import { installationImages } from '../../activities/compute/kubernetes/podPolicy/policyViolations.ts';
import type { ImplicitlyAllowed } from '../../activities/compute/kubernetes/podPolicy/podPolicy.ts';
import type { PodTemplate } from '../../core/domain/pod.ts';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import { readPodPolicy, readPodTemplate, nonEmptySettings } from '../../worker/settings/config.ts';
import type { ConfigProblem } from '../../worker/settings/configError.ts';
import { settings } from '../../worker/settings/settings.ts';
import { CliError } from '../shared/exit.ts';
import type { Output } from '../shared/output.ts';

/** Options of `holdfast pod-policy`. */
export interface PodPolicyOptions {
  /**
   * Service account of the worker, as `namespace/name`. Not a required option for commander,
   * because `schema` does not need it.
   */
  readonly serviceAccount?: string;
  /**
   * Whether the account is that with which GitHub's container hooks create pods for jobs.
   * @default false
   */
  readonly jobPods?: boolean;
  /** Name of the policy and its binding. */
  readonly name: string;
}

/** Settings that the policy depends on. No token is needed. */
const parts = settings.pick({
  HOLDFAST_KUBERNETES_NAMESPACE: true,
  HOLDFAST_NAMESPACES: true,
  HOLDFAST_JOB_POD_NAMESPACES: true,
  HOLDFAST_RUNNER_IMAGE: true,
  HOLDFAST_SUPERVISOR_IMAGE: true,
  HOLDFAST_STORE_VOLUME_CLAIM: true,
  HOLDFAST_STORE_SECRET: true,
});

function implicitlyAllowed(
  {
    HOLDFAST_KUBERNETES_NAMESPACE: namespace,
    HOLDFAST_NAMESPACES: others = [],
    HOLDFAST_JOB_POD_NAMESPACES: jobPods = [],
    HOLDFAST_RUNNER_IMAGE: image,
    HOLDFAST_SUPERVISOR_IMAGE: supervisor,
    HOLDFAST_STORE_VOLUME_CLAIM: store,
    HOLDFAST_STORE_SECRET: storeSecret,
  }: z.output<typeof parts>,
  home: string,
  template: PodTemplate | undefined,
): ImplicitlyAllowed {
  const images = installationImages({
    image,
    ...omitUndefined({
      template,
      supervisor: supervisor === undefined ? undefined : { image: supervisor },
    }),
  });
  return {
    images,
    namespaces: [...new Set([namespace ?? home, ...others, ...jobPods])],
    ...omitUndefined({ store, storeSecret }),
  };
}

/**
 * Prints the policy.
 * @throws CliError `usage` for each invalid setting
 */
export function podPolicy(
  output: Output,
  env: Readonly<Record<string, string | undefined>>,
  { serviceAccount, name, jobPods: ofJobs = false }: PodPolicyOptions,
): void {
  if (serviceAccount === undefined)
    throw new CliError(
      'usage',
      "required option '--service-account <namespace/name>' not specified; see --help",
    );
  const home = workerNamespace(serviceAccount);
  const problems: ConfigProblem[] = [];
  const set = nonEmptySettings(env);
  const policy = readPodPolicy(set, problems);
  const template = readPodTemplate(set, problems);
  const read = parts.safeParse(set);
  for (const { path, message } of read.error?.issues ?? [])
    problems.push({ setting: path.join('.'), message });
  if (!read.success || problems.length > 0)
    throw new CliError('usage', 'invalid settings', {
      fields: problems.map(({ setting, message }) => ({ field: `${setting}:`, message })),
    });
  const own = implicitlyAllowed(read.data, home, template);
  const objects = (ofJobs ? jobPodAdmissionPolicy : admissionPolicy)(policy, own, {
    name,
    serviceAccount,
  });
  output.result(objects, [
    objects
      .map((object) => stringify(object, { lineWidth: 0 }))
      .join('---\n')
      .trimEnd(),
  ]);
}

/**
 * Returns the namespace of the worker's service account.
 * @throws CliError `usage` if it is missing or not `namespace/name`
 */
function workerNamespace(serviceAccount: string): string {
  const [home = '', account, ...more] = serviceAccount.split('/');
  if (home === '' || account === undefined || account === '' || more.length > 0)
    throw new CliError(
      'usage',
      `--service-account: "${serviceAccount}" is not namespace/name: write for example holdfast/holdfast-worker`,
    );
  return home;
}
