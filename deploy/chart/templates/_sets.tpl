{{/* Namespace of the RunnerSets. Those of `sets` are in that of their runners unless another is named; empty: the workers watch none. */}}
{{- define "holdfast.runnerSetNamespace" -}}
{{- .Values.runnerSetNamespace | default (ternary .Values.runnersNamespace "" (not (empty .Values.sets))) }}
{{- end }}

{{/* Fails where values of gha-runner-scale-set are at the top, as in ARC, where one release is one set. */}}
{{- define "holdfast.checkTopLevel" -}}
{{- range list "minRunners" "maxRunners" "runnerGroup" "runnerScaleSetName" "containerMode" "template" }}
{{- if hasKey $.Values . }}
{{- fail (printf "%s: is a field of a set, because one release has many sets: write it below sets, such as sets: [{name: linux, %s: ...}]" . (ternary "maxRunners" . (eq . "runnerScaleSetName"))) }}
{{- end }}
{{- end }}
{{- end }}

{{/* Fails where the cluster's CustomResourceDefinition is older than the chart's: Helm installs what is in crds/ once and never upgrades it. `helm template` cannot know. */}}
{{- define "holdfast.checkDefinition" -}}
{{- $name := "runnersets.holdfast.dev" }}
{{- $annotation := "holdfast.dev/revision" }}
{{- if lookup "v1" "Namespace" "" "kube-system" }}
{{- $own := fromYaml (.Files.Get (printf "crds/%s.yaml" $name)) }}
{{- $there := lookup "apiextensions.k8s.io/v1" "CustomResourceDefinition" "" $name }}
{{- $needed := index $own.metadata.annotations $annotation | int }}
{{- $has := index (($there.metadata | default dict).annotations | default dict) $annotation | default 0 | int }}
{{- if and (lt $has $needed) (or $there .Release.IsUpgrade) }}
{{- fail (printf "the CustomResourceDefinition %s has revision %d and this chart needs %d, because Helm never upgrades it: helm show crds CHART | kubectl apply --server-side --force-conflicts -f -" $name $has $needed) }}
{{- end }}
{{- end }}
{{- end }}

{{/* The spec of one RunnerSet. Arguments: the root, and the set of the values. */}}
{{- define "holdfast.set" -}}
{{- $root := index . 0 }}
{{- $set := index . 1 }}
{{- $template := dict "labels" ($set.labels | default (list $set.name)) }}
{{- $template = merge $template (fromYaml (include "holdfast.scope" (list $set.name ($set.githubConfigUrl | default $root.Values.githubConfigUrl)))) }}
{{- with $set.demand }}{{ $template = set $template "demand" . }}{{ end }}
{{- with $set.scaleSet }}{{ $template = set $template "scaleSet" . }}{{ end }}
{{- with $set.runnerGroup }}{{ $template = set $template "runnerGroup" . }}{{ end }}
{{- with $set.runnerGroupId }}{{ $template = set $template "runnerGroupId" . }}{{ end }}
{{- with ternary $set.proxy $root.Values.proxy (hasKey $set "proxy") }}{{ $template = set $template "proxy" . }}{{ end }}
{{- with (ternary $set.githubServerTLS $root.Values.githubServerTLS (hasKey $set "githubServerTLS")).certificateFrom }}{{ $template = set $template "ca" . }}{{ end }}
{{- with ($set.containerMode | default dict).namespace }}{{ $template = set $template "namespace" . }}{{ end }}
{{- $pod := fromYaml (include "holdfast.setPod" .) }}
{{- if $pod }}{{ $template = set $template "pod" $pod }}{{ end }}
{{- $size := dict }}
{{- if hasKey $set "replicas" }}
{{- if or (hasKey $set "minRunners") (hasKey $set "maxRunners") }}{{ fail (printf "sets: %s has replicas, and minRunners or maxRunners: one excludes the other" $set.name) }}{{ end }}
{{- $size = dict "replicas" (int $set.replicas) }}
{{- else }}
{{- $size = dict "minIdle" (int ($set.minRunners | default 0)) "max" (int (required (printf "sets: %s needs maxRunners, or replicas" $set.name) $set.maxRunners)) }}
{{- end }}
{{- with $set.capacity }}{{ $size = set $size "capacity" . }}{{ end }}
{{- toYaml (mergeOverwrite (merge (dict "template" $template) $size) (deepCopy ($set.set | default dict))) }}
{{- end }}

{{/* `https://github.com/acme/app`, `https://github.com/acme`, `https://github.com/enterprises/big`. */}}
{{- define "holdfast.scope" -}}
{{- $url := required (printf "sets: %s needs githubConfigUrl, its own or that of all sets" (index . 0)) (index . 1) }}
{{- $parts := (urlParse $url).path | trimAll "/" | splitList "/" }}
{{- if or (gt (len $parts) 2) (eq (first $parts) "") }}{{ fail (printf "githubConfigUrl: %s is not the address of an organization, a repository or an enterprise" $url) }}{{ end }}
{{- if eq (len $parts) 1 }}
organization: {{ first $parts | quote }}
{{- else if eq (first $parts) "enterprises" }}
enterprise: {{ last $parts | quote }}
{{- else }}
repository: {{ join "/" $parts | quote }}
{{- end }}
{{- end }}

{{/* The pod template of a set, with what its containerMode adds. */}}
{{- define "holdfast.setPod" -}}
{{- $root := index . 0 }}
{{- $set := index . 1 }}
{{- $pod := deepCopy ($set.template | default dict) }}
{{- $mode := ($set.containerMode | default dict).type | default "" }}
{{- if $mode }}
{{- $spec := $pod.spec | default dict }}
{{- $runner := dict "name" "runner" }}
{{- $others := list }}
{{- range $spec.containers }}{{ if eq .name "runner" }}{{ $runner = . }}{{ else }}{{ $others = append $others . }}{{ end }}{{ end }}
{{- $image := $runner.image | default (($set.set | default dict).template | default dict).image | default $root.Values.runnerImage | default "ghcr.io/actions/actions-runner:2.338.0" }}
{{- $preset := fromYaml (include (printf "holdfast.mode.%s" $mode) (dict "root" $root "set" $set "image" $image)) }}
{{- range list "env" "volumeMounts" }}
{{- $own := list }}{{ range index $runner . }}{{ $own = append $own .name }}{{ end }}
{{- $list := index $runner . | default list }}
{{- range index $preset . }}{{ if not (has .name $own) }}{{ $list = append $list . }}{{ end }}{{ end }}
{{- if $list }}{{ $runner = set $runner . $list }}{{ end }}
{{- end }}
{{- $volumes := $spec.volumes | default list }}
{{- $own := list }}{{ range $volumes }}{{ $own = append $own .name }}{{ end }}
{{- range $preset.volumes }}{{ if not (has .name $own) }}{{ $volumes = append $volumes . }}{{ end }}{{ end }}
{{- $spec = set $spec "containers" (prepend $others $runner) }}
{{- if $volumes }}{{ $spec = set $spec "volumes" $volumes }}{{ end }}
{{- with $preset.initContainers }}{{ $spec = set $spec "initContainers" (concat . ($spec.initContainers | default list)) }}{{ end }}
{{- $pod = set $pod "spec" (merge $spec ($preset.spec | default dict)) }}
{{- end }}
{{- if $pod }}{{ toYaml $pod }}{{ end }}
{{- end }}

{{/* A Docker daemon beside the runner. It is privileged: podPolicy has to allow that, and Pod Security of the runners' namespace to be `privileged`. */}}
{{- define "holdfast.mode.dind" -}}
{{- $policy := .root.Values.podPolicy }}
{{- $privileged := $policy.privileged | default false }}
{{- $images := $policy.images | default list }}
{{- $found := false }}
{{- range $rule := $policy.rules | default list }}
{{- $is := false }}
{{- range fromJsonArray (include "holdfast.regexes" ($rule.sets | default list)) }}{{ if regexMatch . $.set.name }}{{ $is = true }}{{ end }}{{ end }}
{{- if and $is (not $found) }}
{{- $found = true }}
{{- if hasKey $rule "privileged" }}{{ $privileged = $rule.privileged }}{{ end }}
{{- if hasKey $rule "images" }}{{ $images = $rule.images }}{{ end }}
{{- end }}
{{- end }}
{{- if not (and $privileged $images) }}
{{- fail (printf "sets: %s has containerMode dind, whose Docker daemon is privileged: set podPolicy.rules: [{sets: [%s], privileged: true, images: [\"docker:dind\"]}], and label the namespace %s pod-security.kubernetes.io/enforce=privileged" .set.name .set.name .root.Values.runnersNamespace) }}
{{- end }}
initContainers:
  - name: init-dind-externals
    image: {{ .image }}
    command: [cp, -r, /home/runner/externals/., /home/runner/tmpDir/]
    volumeMounts: [{ name: dind-externals, mountPath: /home/runner/tmpDir }]
  - name: dind
    image: docker:dind
    securityContext: { privileged: true }
    restartPolicy: Always
    startupProbe: { exec: { command: [docker, info] }, initialDelaySeconds: 0, failureThreshold: 24, periodSeconds: 5 }
    args: [dockerd, "--host=unix:///var/run/docker.sock", --group=$(DOCKER_GROUP_GID)]
    env: [{ name: DOCKER_GROUP_GID, value: "123" }]
    volumeMounts:
      - { name: work, mountPath: /home/runner/_work }
      - { name: dind-sock, mountPath: /var/run }
      - { name: dind-externals, mountPath: /home/runner/externals }
env:
  - { name: DOCKER_HOST, value: "unix:///var/run/docker.sock" }
  - { name: RUNNER_WAIT_FOR_DOCKER_IN_SECONDS, value: "120" }
volumeMounts:
  - { name: work, mountPath: /home/runner/_work }
  - { name: dind-sock, mountPath: /var/run }
volumes:
  - { name: work, emptyDir: {} }
  - { name: dind-sock, emptyDir: {} }
  - { name: dind-externals, emptyDir: {} }
{{- end }}

{{/* Jobs in pods of their own, which the runner's hooks make as the chart's account for them. */}}
{{- define "holdfast.mode.kubernetes" -}}
{{ include "holdfast.jobPods" . }}
  - { name: ACTIONS_RUNNER_CONTAINER_HOOKS, value: /home/runner/k8s/index.js }
volumeMounts:
  - { name: work, mountPath: /home/runner/_work }
volumes:
  - name: work
    ephemeral:
      volumeClaimTemplate:
        spec:
          {{- toYaml (.set.containerMode.kubernetesModeWorkVolumeClaim | default (dict "accessModes" (list "ReadWriteOnce") "resources" (dict "requests" (dict "storage" "1Gi")))) | nindent 10 }}
{{- end }}

{{- define "holdfast.mode.kubernetes-novolume" -}}
{{ include "holdfast.jobPods" . }}
  - { name: ACTIONS_RUNNER_CONTAINER_HOOKS, value: /home/runner/k8s-novolume/index.js }
  - { name: ACTIONS_RUNNER_IMAGE, value: {{ .image }} }
{{- end }}

{{- define "holdfast.jobPods" -}}
{{- $account := printf "%s-job-pods" (include "holdfast.fullname" .root) }}
{{- $own := ((.set.template | default dict).spec | default dict).serviceAccountName }}
{{- $account = $own | default $account }}
{{- if not (has $account (.root.Values.podPolicy.serviceAccounts | default list)) }}
{{- fail (printf "sets: %s has containerMode %s, whose hooks act as the service account %s: set podPolicy.serviceAccounts: [%s]" .set.name .set.containerMode.type $account $account) }}
{{- end }}
spec:
  serviceAccountName: {{ $account }}
  automountServiceAccountToken: true
env:
  - { name: ACTIONS_RUNNER_POD_NAME, valueFrom: { fieldRef: { fieldPath: metadata.name } } }
  - { name: ACTIONS_RUNNER_REQUIRE_JOB_CONTAINER, value: "true" }
{{- end }}

{{/* What a process for one command has. Arguments: root, name of the container, arguments of holdfast. */}}
{{- define "holdfast.commandPod" -}}
{{- $secrets := fromYaml (include "holdfast.temporalSecrets" .root) -}}
automountServiceAccountToken: false
enableServiceLinks: false
restartPolicy: Never
{{- include "holdfast.podBasics" .root }}
containers:
  - name: {{ .name }}
    {{- include "holdfast.containerBasics" .root | nindent 4 }}
    command: {{ toJson (prepend .args "holdfast") }}
    env:
      {{- include "holdfast.temporalEnv" .root | trim | nindent 6 }}
    resources:
      {{- toYaml .root.Values.hooks.resources | nindent 6 }}
    {{- if $secrets }}
    volumeMounts:
      {{- include "holdfast.secretMounts" $secrets | nindent 6 }}
    {{- end }}
{{- if $secrets }}
volumes:
  {{- include "holdfast.secretVolumes" $secrets | nindent 2 }}
{{- end }}
{{- end }}
