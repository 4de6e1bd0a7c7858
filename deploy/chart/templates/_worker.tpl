{{/* Two releases, or two Temporals, must not take each other's pods for their own. */}}
{{- define "holdfast.installation" -}}
{{- .Values.installation | default (printf "%s-%s" .Release.Namespace .Release.Name | replace "." "-" | trunc 63 | trimSuffix "-") }}
{{- end }}

{{/* The settings that worker and sweep share, besides those for Temporal. Other values than `settings` have made some of them. */}}
{{- define "holdfast.workerEnv" -}}
{{- include "holdfast.temporalEnv" . }}
{{- if .Values.temporal.codecKeySecret }}
{{- if .Values.temporal.codecRequired }}
- { name: HOLDFAST_CODEC_REQUIRED, value: 'true' }
{{- with .Values.temporal.codecUnboundWorkflows }}
- { name: HOLDFAST_CODEC_UNBOUND_WORKFLOWS, value: {{ . | quote }} }
{{- end }}
{{- end }}
{{- end }}
{{- include "holdfast.credentialEnv" . }}
- { name: HOLDFAST_INSTALLATION, value: {{ include "holdfast.installation" . }} }
- { name: HOLDFAST_KUBERNETES_NAMESPACE, value: {{ .Values.runnersNamespace | quote }} }
{{- with .Values.namespaces }}
- { name: HOLDFAST_NAMESPACES, value: {{ join "," . | quote }} }
{{- end }}
{{- with fromJsonArray (include "holdfast.jobPodNamespaces" .) }}
- { name: HOLDFAST_JOB_POD_NAMESPACES, value: {{ join "," . | quote }} }
{{- end }}
{{- if ne .Values.supervisorImage "none" }}
- { name: HOLDFAST_SUPERVISOR_IMAGE, value: {{ .Values.supervisorImage | default (include "holdfast.image" .) | quote }} }
{{- end }}
{{- range $name, $value := omit .Values.settings "HOLDFAST_GITHUB_URL" }}
- { name: {{ $name }}, value: {{ include "holdfast.setting" (list $name $value) | quote }} }
{{- end }}
{{- include "holdfast.networkEnv" . }}
{{- with .Values.worker.env }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* The proxy and the certificate authorities of requests to GitHub. Temporal and the cluster are reached directly. */}}
{{- define "holdfast.networkEnv" -}}
{{- $proxy := .Values.proxy }}
{{- range list "http" "https" }}
{{- $scheme := . }}
{{- with index $proxy $scheme }}
{{- $login := "" }}
{{- with .credentialSecretRef }}
{{- $secret := . }}
{{- range list "username" "password" }}
- name: {{ printf "%s_PROXY_%s" $scheme . | upper }}
  valueFrom: { secretKeyRef: { name: {{ $secret }}, key: {{ . }} } }
{{- end }}
{{- $login = printf "://$(%s_PROXY_USERNAME):$(%s_PROXY_PASSWORD)@" (upper $scheme) (upper $scheme) }}
{{- end }}
- { name: {{ $scheme }}_proxy, value: {{ if $login }}{{ .url | replace "://" $login | quote }}{{ else }}{{ .url | quote }}{{ end }} }
{{- end }}
{{- end }}
{{- with $proxy.noProxy }}
- { name: no_proxy, value: {{ . | quote }} }
{{- end }}
{{- if .Values.githubServerTLS.certificateFrom }}
- { name: NODE_EXTRA_CA_CERTS, value: /etc/holdfast/github-ca/ca.crt }
{{- end }}
{{- end }}

{{- define "holdfast.caMount" -}}
{{- if .Values.githubServerTLS.certificateFrom }}
- { name: github-ca, mountPath: /etc/holdfast/github-ca, readOnly: true }
{{- end }}
{{- end }}

{{- define "holdfast.caVolume" -}}
{{- with .Values.githubServerTLS.certificateFrom }}
- name: github-ca
  {{- with .configMapKeyRef }}
  configMap: { name: {{ .name }}, items: [{ key: {{ .key | quote }}, path: ca.crt }] }
  {{- end }}
  {{- with .secretKeyRef }}
  secret: { secretName: {{ .name }}, items: [{ key: {{ .key | quote }}, path: ca.crt }] }
  {{- end }}
{{- end }}
{{- end }}

{{/* Helm reads YAML in which `off` is false. */}}
{{- define "holdfast.setting" -}}
{{- if and (has (index . 0) (list "HOLDFAST_SWEEP_INTERVAL" "HOLDFAST_POD_LOGS")) (kindIs "bool" (index . 1)) }}off{{ else if kindIs "map" (index . 1) }}{{ toJson (index . 1) }}{{ else }}{{ include "holdfast.text" (index . 1) }}{{ end }}
{{- end }}

{{- define "holdfast.workerSecrets" -}}
{{ include "holdfast.temporalSecrets" . }}
{{ include "holdfast.credentialSecrets" . }}
{{- end }}

{{- define "holdfast.workerPodMetadata" -}}
metadata:
  labels:
    {{- toYaml (merge (dict "app" (printf "%s-worker" (include "holdfast.fullname" .))) .Values.worker.podLabels) | nindent 4 }}
  {{- $annotations := deepCopy .Values.worker.podAnnotations }}
  {{- if or .Values.podPolicy .Values.podTemplate }}
  {{- /* Read at start only. */}}
  {{- $annotations = set $annotations "checksum/pod-policy" (toJson (list .Values.podPolicy .Values.podTemplate) | sha256sum) }}
  {{- end }}
  {{- with $annotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end }}

{{/*
A pod's spec without what Temporal's worker controller adds of its Connection: variables, and the certificates' volume, of this very name, at /etc/temporal/tls. Argument: the spec as YAML.
https://github.com/temporalio/temporal-worker-controller/blob/main/internal/k8s/deployments.go (ApplyControllerPodSpecModifications)
*/}}
{{- define "holdfast.withoutConnection" -}}
{{- $spec := fromYaml . -}}
{{- $theirs := list "TEMPORAL_ADDRESS" "TEMPORAL_NAMESPACE" "TEMPORAL_TLS_CLIENT_CERT_PATH" "TEMPORAL_TLS_CLIENT_KEY_PATH" "HOLDFAST_TEMPORAL_API_KEY_FILE" "temporal-tls" "temporal-api-key" -}}
{{- range $container := $spec.containers }}
{{- $env := list }}
{{- range $container.env }}{{ if not (has .name $theirs) }}{{ $env = append $env . }}{{ end }}{{ end }}
{{- range $env }}{{ if eq .name "TEMPORAL_TLS_SERVER_CA_CERT_PATH" }}{{ $_ := set . "value" "/etc/temporal/tls/ca.crt" }}{{ end }}{{ end }}
{{- $mounts := list }}
{{- range $container.volumeMounts }}{{ if not (has .name $theirs) }}{{ $mounts = append $mounts . }}{{ end }}{{ end }}
{{- $_ := set $container "env" $env }}
{{- $_ := set $container "volumeMounts" $mounts }}
{{- end }}
{{- $volumes := list }}
{{- range $spec.volumes }}{{ if not (has .name $theirs) }}{{ $volumes = append $volumes . }}{{ end }}{{ end }}
{{- $_ := set $spec "volumes" $volumes }}
{{- toYaml $spec }}
{{- end }}

{{- define "holdfast.workerPod" -}}
serviceAccountName: {{ include "holdfast.fullname" . }}-worker
# Above HOLDFAST_SHUTDOWN_FORCE_TIME (50s).
terminationGracePeriodSeconds: 60
{{- include "holdfast.podBasics" . }}
containers:
  - name: worker
    {{- include "holdfast.containerBasics" . | nindent 4 }}
    env:
      {{- include "holdfast.workerEnv" . | trim | nindent 6 }}
      {{- with .Values.runnerImage }}
      - { name: HOLDFAST_RUNNER_IMAGE, value: {{ . | quote }} }
      {{- end }}
      {{- with include "holdfast.runnerSetNamespace" . }}
      - { name: HOLDFAST_RUNNER_SET_RESOURCE_NAMESPACE, value: {{ . | quote }} }
      {{- end }}
      {{- if .Values.podPolicy }}
      - { name: HOLDFAST_POD_POLICY_FILE, value: /etc/holdfast/pod-policy/pod-policy.yaml }
      {{- end }}
      {{- if .Values.podTemplate }}
      - { name: HOLDFAST_POD_TEMPLATE_FILE, value: /etc/holdfast/pod-policy/pod-template.yaml }
      {{- end }}
      {{- if and .Values.webhook.enabled (not (hasKey .Values.settings "HOLDFAST_REDELIVERY_INTERVAL")) }}
      # Deliveries go to the webhook's processes; what they miss only a worker can have sent again, with a GitHub App.
      - { name: HOLDFAST_REDELIVERY_INTERVAL, value: 5m }
      {{- end }}
    ports:
      - { name: http, containerPort: 8080 }
    livenessProbe:
      httpGet: { path: /livez, port: http }
    readinessProbe:
      httpGet: { path: /readyz, port: http }
    resources:
      {{- toYaml .Values.worker.resources | nindent 6 }}
    volumeMounts:
      {{- include "holdfast.secretMounts" (fromYaml (include "holdfast.workerSecrets" .)) | trim | nindent 6 }}
      {{- with include "holdfast.caMount" . }}{{ trim . | nindent 6 }}{{ end }}
      {{- if or .Values.podPolicy .Values.podTemplate }}
      - { name: pod-policy, mountPath: /etc/holdfast/pod-policy, readOnly: true }
      {{- end }}
volumes:
  {{- include "holdfast.secretVolumes" (fromYaml (include "holdfast.workerSecrets" .)) | trim | nindent 2 }}
  {{- with include "holdfast.caVolume" . }}{{ trim . | nindent 2 }}{{ end }}
  {{- if or .Values.podPolicy .Values.podTemplate }}
  - name: pod-policy
    configMap: { name: {{ include "holdfast.fullname" . }}-pod-policy }
  {{- end }}
{{- end }}
