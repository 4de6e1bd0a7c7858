{{- define "holdfast.fullname" -}}
{{- if .Values.fullnameOverride }}{{ .Values.fullnameOverride | trunc 40 | trimSuffix "-" }}
{{- else if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 40 | trimSuffix "-" }}
{{- else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 40 | trimSuffix "-" }}{{ end }}
{{- end }}

{{/* A value as text. Helm reads each number of a values file as a float, which prints 1000000 as 1e+06. */}}
{{- define "holdfast.text" -}}
{{- if kindIs "float64" . }}{{ if eq . (floor .) }}{{ int64 . }}{{ else }}{{ . }}{{ end }}{{ else }}{{ . }}{{ end }}
{{- end }}

{{/* Of all objects. Pods are selected by `app` alone, which never changes. */}}
{{- define "holdfast.labels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name (.Chart.Version | replace "+" "_") }}
{{- end }}

{{/* Arguments: the root, the last part of the name, and optionally the namespace. */}}
{{- define "holdfast.metadata" -}}
{{- $root := index . 0 -}}
name: {{ include "holdfast.fullname" $root }}{{ with index . 1 }}-{{ . }}{{ end }}
namespace: {{ if gt (len .) 2 }}{{ index . 2 }}{{ else }}{{ $root.Release.Namespace }}{{ end }}
labels:
  {{- include "holdfast.labels" $root | nindent 2 }}
{{- end }}

{{- define "holdfast.image" -}}
{{- if hasPrefix "sha256:" .Values.image.tag }}{{ fail "image.tag: is a digest; set image.digest instead" }}{{ end }}
{{- if and .Values.image.tag .Values.image.digest }}{{ fail "image: has both a tag and a digest; remove one of them" }}{{ end -}}
{{ required "image.repository: name the image that you have built from deploy/images/worker.Dockerfile, such as my-registry/holdfast-worker" .Values.image.repository }}{{ with .Values.image.digest }}@{{ . }}{{ else }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ end }}
{{- end }}

{{/* What every pod of ours has, and Pod Security "restricted" asks for. 1000 is `holdfast`, the user of the worker's image. */}}
{{- define "holdfast.podBasics" -}}
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 1000
  runAsGroup: 1000
  seccompProfile: { type: RuntimeDefault }
{{- end }}

{{- define "holdfast.containerBasics" -}}
image: {{ include "holdfast.image" . | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: { drop: [ALL] }
{{- end }}

{{/* Laid over a pod's spec. Arguments: the spec as YAML, the values. */}}
{{- define "holdfast.podSpec" -}}
{{- toYaml (mergeOverwrite (fromYaml (index . 0)) (deepCopy (index . 1))) }}
{{- end }}

{{/* How every process finds Temporal, and where its spans go: worker, webhook, sweep and hooks. */}}
{{- define "holdfast.temporalEnv" -}}
- { name: TEMPORAL_ADDRESS, value: {{ .Values.temporal.address | quote }} }
- { name: TEMPORAL_NAMESPACE, value: {{ .Values.temporal.namespace | quote }} }
- { name: HOLDFAST_TASK_QUEUE, value: {{ .Values.taskQueue | quote }} }
{{- if .Values.temporal.tlsSecret }}
- { name: TEMPORAL_TLS_CLIENT_CERT_PATH, value: /etc/holdfast/temporal-tls/tls.crt }
- { name: TEMPORAL_TLS_CLIENT_KEY_PATH, value: /etc/holdfast/temporal-tls/tls.key }
{{- if .Values.temporal.tlsServerCa }}
- { name: TEMPORAL_TLS_SERVER_CA_CERT_PATH, value: /etc/holdfast/temporal-tls/ca.crt }
{{- end }}
{{- end }}
{{- if .Values.temporal.apiKeySecret }}
- { name: HOLDFAST_TEMPORAL_API_KEY_FILE, value: /etc/holdfast/temporal-api-key/api-key }
{{- end }}
{{- if .Values.temporal.codecKeySecret }}
- { name: HOLDFAST_CODEC_KEY_FILE, value: /etc/holdfast/codec/keys }
{{- end }}
{{- with .Values.traces.endpoint }}
- { name: OTEL_EXPORTER_OTLP_ENDPOINT, value: {{ . | quote }} }
- { name: OTEL_TRACES_SAMPLER, value: parentbased_traceidratio }
- { name: OTEL_TRACES_SAMPLER_ARG, value: {{ $.Values.traces.ratio | quote }} }
{{- end }}
{{- end }}

{{/* Secrets that these variables name, by the folder that each is mounted at below /etc/holdfast. */}}
{{- define "holdfast.temporalSecrets" -}}
{{- with .Values.temporal.tlsSecret }}
temporal-tls: {{ . }}
{{- end }}
{{- with .Values.temporal.apiKeySecret }}
temporal-api-key: {{ . }}
{{- end }}
{{- with .Values.temporal.codecKeySecret }}
codec: {{ . }}
{{- end }}
{{- end }}

{{/* Arguments: an object from folder to Secret. */}}
{{- define "holdfast.secretMounts" -}}
{{- range $folder, $secret := . }}
- { name: {{ $folder }}, mountPath: /etc/holdfast/{{ $folder | replace "credential-" "credentials/" }}, readOnly: true }
{{- end }}
{{- end }}
{{- define "holdfast.secretVolumes" -}}
{{- range $folder, $secret := . }}
- name: {{ $folder }}
  secret: { secretName: {{ $secret }} }
{{- end }}
{{- end }}
