import {
  REGISTER_CONTAINER,
  RUNNER_CONTAINER,
  SHARED_DIR_CONTAINER,
  STORE_VOLUME,
  UPLOADER_CONTAINER,
} from '../../../../core/domain/podTemplate.ts';
import { TOKEN_VARIABLES } from '../../../../core/domain/runnerKinds/runnerKinds.ts';
import {
  all,
  celList,
  containerViolations,
  defined,
  everyContainer,
  everyVolume,
  type PodRule,
  volumeViolations,
} from './podRule.ts';
import { matchesAny } from './patterns.ts';

/** Containers that Holdfast adds to the pod of a step. No template may use these names. */
const BESIDE_A_STEP: readonly string[] = [UPLOADER_CONTAINER, SHARED_DIR_CONTAINER];

/** Name of a runner's own Secret, with its registration (activities/compute/naming.ts). */
const RUNNER_SECRET = '^.+-[0-9a-f]{10}$';

/** Returns the patterns for the Secret. A `*` does not cover the registrations of runners. */
const secretsFor = (name: string, secrets: readonly string[]): readonly string[] =>
  new RegExp(RUNNER_SECRET).test(name) ? secrets.filter((each) => !each.includes('*')) : secrets;

/** Returns the same as a CEL expression. */
const isSecretCovered = (name: string): string =>
  `(${name} != object.metadata.name && variables.policy.secrets.exists(p, ${name}.matches(p) && (!${name}.matches("${RUNNER_SECRET}") || !p.contains("*"))))`;

/**
 * Returns whether the variable is part of the pod's own registration, in a container that needs it.
 * Only the container that registers gets a token.
 */
function isOwnRegistration(
  container: string,
  pod: string,
  ref: { name?: string; key: string } | undefined,
): boolean {
  if (ref?.name !== pod) return false;
  return (
    container === REGISTER_CONTAINER ||
    (container === RUNNER_CONTAINER && !TOKEN_VARIABLES.includes(ref.key))
  );
}

/** The same as a CEL expression. */
const OWN_REGISTRATION_CEL = [
  '(e.valueFrom.secretKeyRef.name == object.metadata.name',
  `(c.name == "${REGISTER_CONTAINER}" || (c.name == "${RUNNER_CONTAINER}"`,
  `!(e.valueFrom.secretKeyRef.key in ${celList(TOKEN_VARIABLES)}))))`,
].join(' && ');

/** Rule of the Secrets that a pod may use. */
export const SECRET_RULE: PodRule = {
  field: 'secrets',
  violations: (pod, { secrets }, { storeSecret }) => {
    const allowed = (name: string | undefined): boolean =>
      name === undefined || (name !== pod.name && matchesAny(secretsFor(name, secrets), name));
    return [
      ...containerViolations(
        pod,
        ({ name: container, env = [], envFrom = [], volumeMounts }, path) => [
          ...(BESIDE_A_STEP.includes(container) || storeSecret === undefined
            ? []
            : (volumeMounts ?? [])
          ).map(
            ({ name }, i) =>
              name === STORE_VOLUME && `${path}.volumeMounts[${i}]: the Secret "${storeSecret}"`,
          ),
          ...env.map(
            ({ valueFrom }, i) =>
              !isOwnRegistration(container, pod.name, valueFrom?.secretKeyRef) &&
              !allowed(valueFrom?.secretKeyRef?.name) &&
              `${path}.env[${i}]: the Secret "${valueFrom?.secretKeyRef?.name}"`,
          ),
          ...envFrom.map(
            ({ secretRef }, i) =>
              !allowed(secretRef?.name) && `${path}.envFrom[${i}]: the Secret "${secretRef?.name}"`,
          ),
        ],
      ),
      ...volumeViolations(pod, ({ name, secret, projected }, path) => [
        secret !== undefined &&
          !(name === STORE_VOLUME && secret.secretName === storeSecret) &&
          !allowed(secret.secretName ?? '') &&
          `${path}.secret: the Secret "${secret.secretName}"`,
        ...(projected?.sources ?? []).map(
          ({ secret: source }) =>
            !allowed(source?.name) && `${path}.projected: the Secret "${source?.name}"`,
        ),
      ]),
      ...defined(
        (pod.spec.imagePullSecrets ?? []).map(
          ({ name = '' }, i) => !allowed(name) && `imagePullSecrets[${i}]: the Secret "${name}"`,
        ),
      ),
    ];
  },
  cel: [
    everyContainer(
      [
        all(
          'c.env',
          'e',
          `!has(e.valueFrom) || !has(e.valueFrom.secretKeyRef) || ${OWN_REGISTRATION_CEL} || ${isSecretCovered('e.valueFrom.secretKeyRef.name')}`,
        ),
        all('c.envFrom', 'e', `!has(e.secretRef) || ${isSecretCovered('e.secretRef.name')}`),
        `(variables.policy.storeSecret == "" || ${all(
          'c.volumeMounts',
          'm',
          `m.name != "${STORE_VOLUME}" || c.name in ${celList(BESIDE_A_STEP)}`,
        )})`,
      ].join(' && '),
    ),
    everyVolume(
      `(!has(v.secret) || (has(v.secret.secretName) && ((v.name == "${STORE_VOLUME}" && v.secret.secretName == variables.policy.storeSecret) || ${isSecretCovered('v.secret.secretName')}))) && (!has(v.projected) || !has(v.projected.sources) || v.projected.sources.all(s, !has(s.secret) || ${isSecretCovered('s.secret.name')}))`,
    ),
    all('object.spec.imagePullSecrets', 's', isSecretCovered('s.name')),
  ].join(' && '),
};
