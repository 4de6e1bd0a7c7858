/**
 * The one place where the lab's versions are pinned: for each binary its version, where it is published, and how it is
 * built from Go modules where nothing can be downloaded.
 */

export interface BinarySpec {
  /** File name, also looked for in PATH. */
  readonly name: string;
  /** Folder in the cache: several binaries of one release share it. */
  readonly release: string;
  readonly version: string;
  /** Environment variable with an explicit path. */
  readonly env: string;
  /** How a binary found in PATH says its version, and which answers will do. Absent: any version will do. */
  readonly versionCheck?: { readonly args: readonly string[]; readonly accept: RegExp };
  readonly download?: Download;
  readonly go?: GoBuild;
  /** How to get it by hand. */
  readonly fix: string;
}

/** `${os}` is linux or darwin, `${arch}` amd64 or arm64. */
export interface Download {
  readonly url: string;
  /** The file's SHA-256, alone or in a list `<sha256>  <file>`. */
  readonly checksumUrl?: string;
  /** Path inside the .tar.gz; absent: the download is the binary. */
  readonly member?: string;
}

/**
 * `install`: the module has no replace directives, so `go install pkg@version` works.
 * `module`: needs a go.mod of our own (a dependency's replace directives are ignored by Go).
 */
export type GoBuild =
  | { readonly kind: 'install'; readonly package: string }
  | { readonly kind: 'module'; readonly package: string; readonly goMod: string; readonly ldflags: string };

const TEMPORAL = '1.5.1';
const ETCD = '3.6.6';
const KUBERNETES = '1.34.3';
const KWOK = '0.7.0';
const VERSITYGW = '1.8.0';
const HELM = '3.19.2';

/** Kubernetes' staging modules: k8s.io/kubernetes v1.x.y requires them as v0.0.0 and replaces them, so we must too. */
const STAGING = [
  'api', 'apiextensions-apiserver', 'apimachinery', 'apiserver', 'cli-runtime', 'client-go', 'cloud-provider',
  'cluster-bootstrap', 'code-generator', 'component-base', 'component-helpers', 'controller-manager', 'cri-api', 'cri-client',
  'csi-translation-lib', 'dynamic-resource-allocation', 'endpointslice', 'externaljwt', 'kms', 'kube-aggregator',
  'kube-controller-manager', 'kube-proxy', 'kube-scheduler', 'kubectl', 'kubelet', 'metrics', 'mount-utils',
  'pod-security-admission', 'sample-apiserver', 'sample-cli-plugin', 'sample-controller',
]; // prettier-ignore

const KUBERNETES_GO_MOD = [
  'module build',
  'go 1.25',
  `require k8s.io/kubernetes v${KUBERNETES}`,
  ...STAGING.map((module) => `replace k8s.io/${module} => k8s.io/${module} v${KUBERNETES.replace(/^1\./, '0.')}`),
  '',
].join('\n');

const KUBERNETES_LDFLAGS = [
  '-s -w',
  `-X k8s.io/component-base/version.gitVersion=v${KUBERNETES}`,
  '-X k8s.io/component-base/version.gitMajor=1',
  `-X k8s.io/component-base/version.gitMinor=${KUBERNETES.split('.')[1]}`,
  `-X k8s.io/client-go/pkg/version.gitVersion=v${KUBERNETES}`,
].join(' ');

function kubernetesBinary(name: string, env: string): BinarySpec {
  const url = `https://dl.k8s.io/v${KUBERNETES}/bin/\${os}/\${arch}/${name}`;
  return {
    name,
    release: 'kubernetes',
    version: KUBERNETES,
    env,
    versionCheck: { args: name === 'kubectl' ? ['version', '--client'] : ['--version'], accept: /v1\.34\.\d+/ },
    download: { url, checksumUrl: `${url}.sha256` },
    go: { kind: 'module', package: `k8s.io/kubernetes/cmd/${name}`, goMod: KUBERNETES_GO_MOD, ldflags: KUBERNETES_LDFLAGS },
    fix: `install Kubernetes ${KUBERNETES} server binaries, or Go >= 1.25 so that the lab can build them`,
  };
}

const TEMPORAL_RELEASE = `https://github.com/temporalio/cli/releases/download/v${TEMPORAL}`;
const ETCD_RELEASE = `https://github.com/etcd-io/etcd/releases/download/v${ETCD}`;

export const BINARIES = {
  temporal: {
    name: 'temporal',
    release: 'temporal',
    version: TEMPORAL,
    env: 'HOLDFAST_TEMPORAL_BIN',
    versionCheck: { args: ['--version'], accept: /version 1\.([5-9]|\d\d+)\./ },
    download: {
      url: `${TEMPORAL_RELEASE}/temporal_cli_${TEMPORAL}_\${os}_\${arch}.tar.gz`,
      checksumUrl: `${TEMPORAL_RELEASE}/checksums.txt`,
      member: 'temporal',
    },
    go: { kind: 'install', package: 'github.com/temporalio/cli/cmd/temporal' },
    fix: 'install the Temporal CLI (https://docs.temporal.io/cli), or Go >= 1.25 so that the lab can build it',
  },
  etcd: {
    name: 'etcd',
    release: 'etcd',
    version: ETCD,
    env: 'HOLDFAST_ETCD_BIN',
    versionCheck: { args: ['--version'], accept: /etcd Version: 3\.[56]\./ },
    download: {
      url: `${ETCD_RELEASE}/etcd-v${ETCD}-\${os}-\${arch}.tar.gz`,
      checksumUrl: `${ETCD_RELEASE}/SHA256SUMS`,
      member: `etcd-v${ETCD}-\${os}-\${arch}/etcd`,
    },
    go: {
      kind: 'module',
      package: 'go.etcd.io/etcd/server/v3',
      goMod: `module build\ngo 1.25\nrequire go.etcd.io/etcd/server/v3 v${ETCD}\n`,
      ldflags: '-s -w',
    },
    fix: `install etcd ${ETCD}, or Go >= 1.25 so that the lab can build it`,
  },
  'kube-apiserver': kubernetesBinary('kube-apiserver', 'HOLDFAST_KUBE_APISERVER_BIN'),
  'kube-controller-manager': kubernetesBinary('kube-controller-manager', 'HOLDFAST_KUBE_CONTROLLER_MANAGER_BIN'),
  'kube-scheduler': kubernetesBinary('kube-scheduler', 'HOLDFAST_KUBE_SCHEDULER_BIN'),
  kubelet: kubernetesBinary('kubelet', 'HOLDFAST_KUBELET_BIN'),
  kubectl: kubernetesBinary('kubectl', 'HOLDFAST_KUBECTL_BIN'),
  kwok: {
    name: 'kwok',
    release: 'kwok',
    version: KWOK,
    env: 'HOLDFAST_KWOK_BIN',
    versionCheck: { args: ['--version'], accept: /0\.7\.|unknown|devel/ },
    // The project publishes no checksum list; TLS to github.com is what vouches for it.
    download: { url: `https://github.com/kubernetes-sigs/kwok/releases/download/v${KWOK}/kwok-\${os}-\${arch}` },
    go: { kind: 'install', package: 'sigs.k8s.io/kwok/cmd/kwok' },
    fix: `install kwok ${KWOK} (https://kwok.sigs.k8s.io), or Go >= 1.25 so that the lab can build it`,
  },
  versitygw: {
    name: 'versitygw',
    release: 'versitygw',
    version: VERSITYGW,
    env: 'HOLDFAST_VERSITYGW_BIN',
    go: { kind: 'install', package: 'github.com/versity/versitygw/cmd/versitygw' },
    fix: `install versitygw ${VERSITYGW} (https://github.com/versity/versitygw), or Go >= 1.25 so that the lab can build it`,
  },
  helm: {
    name: 'helm',
    release: 'helm',
    version: HELM,
    env: 'HOLDFAST_HELM_BIN',
    versionCheck: { args: ['version', '--short'], accept: /^v3\.(1[4-9]|[2-9]\d)\./ },
    download: {
      url: `https://get.helm.sh/helm-v${HELM}-\${os}-\${arch}.tar.gz`,
      checksumUrl: `https://get.helm.sh/helm-v${HELM}-\${os}-\${arch}.tar.gz.sha256sum`,
      member: '${os}-${arch}/helm',
    },
    go: {
      kind: 'module',
      package: 'helm.sh/helm/v3/cmd/helm',
      goMod: `module build\ngo 1.25\nrequire helm.sh/helm/v3 v${HELM}\n`,
      // Without the version of Kubernetes `helm template` takes itself for one of 2020.
      ldflags: ['-s -w', `-X helm.sh/helm/v3/internal/version.version=v${HELM}`, ...['Major=1', `Minor=${KUBERNETES.split('.')[1]}`].flatMap((part) => [`-X helm.sh/helm/v3/pkg/chartutil.k8sVersion${part}`, `-X helm.sh/helm/v3/pkg/lint/rules.k8sVersion${part}`])].join(' '),
    },
    fix: `install Helm ${HELM} (https://helm.sh), or Go >= 1.25 so that the lab can build it`,
  },
  containerd: {
    name: 'containerd',
    release: 'containerd',
    version: '1.6',
    env: 'HOLDFAST_CONTAINERD_BIN',
    fix: 'apt-get install containerd (or your distribution\'s package)',
  },
  ctr: {
    name: 'ctr',
    release: 'containerd',
    version: '1.6',
    env: 'HOLDFAST_CTR_BIN',
    fix: 'apt-get install containerd (ctr comes with it)',
  },
  runc: { name: 'runc', release: 'runc', version: '1.1', env: 'HOLDFAST_RUNC_BIN', fix: 'apt-get install runc' },
} as const satisfies Record<string, BinarySpec>;

export type BinaryName = keyof typeof BINARIES;
