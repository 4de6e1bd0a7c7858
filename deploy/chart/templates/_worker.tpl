{{/* The settings that worker and sweep share, besides those for Temporal. Other values than `settings` have made some of them. */}}
{{- define "holdfast.workerEnv" -}}
{{- include "holdfast.temporalEnv" . }}
{{- include "holdfast.credentialEnv" . }}
- { name: HOLDFAST_INSTALLATION, value: {{ .Values.installation | quote }} }
- { name: HOLDFAST_KUBERNETES_NAMESPACE, value: {{ .Values.runnersNamespace | quote }} }
{{- range $name, $value := omit .Values.settings "HOLDFAST_GITHUB_URL" }}
- { name: {{ $name }}, value: {{ include "holdfast.setting" (list $name $value) | quote }} }
{{- end }}
{{- with .Values.worker.env }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* Helm reads YAML in which `off` is false. */}}
{{- define "holdfast.setting" -}}
{{- if and (has (index . 0) (list "HOLDFAST_SWEEP_INTERVAL" "HOLDFAST_POD_LOGS")) (kindIs "bool" (index . 1)) }}off{{ else if kindIs "map" (index . 1) }}{{ toJson (index . 1) }}{{ else if kindIs "float64" (index . 1) }}{{ int64 (index . 1) }}{{ else }}{{ index . 1 }}{{ end }}
{{- end }}

{{- define "holdfast.workerSecrets" -}}
{{ include "holdfast.temporalSecrets" . }}
{{ include "holdfast.credentialSecrets" . }}
{{- end }}

{{- define "holdfast.workerPod" -}}
serviceAccountName: {{ include "holdfast.fullname" . }}-worker
# Above HOLDFAST_SHUTDOWN_FORCE (50s).
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
      {{- if ne .Values.supervisorImage "none" }}
      - { name: HOLDFAST_SUPERVISOR_IMAGE, value: {{ .Values.supervisorImage | default (include "holdfast.image" .) | quote }} }
      {{- end }}
      {{- if .Values.podPolicy }}
      - { name: HOLDFAST_POD_POLICY_FILE, value: /etc/holdfast/pod-policy/pod-policy.yaml }
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
      {{- if .Values.podPolicy }}
      - { name: pod-policy, mountPath: /etc/holdfast/pod-policy, readOnly: true }
      {{- end }}
volumes:
  {{- include "holdfast.secretVolumes" (fromYaml (include "holdfast.workerSecrets" .)) | trim | nindent 2 }}
  {{- if .Values.podPolicy }}
  - name: pod-policy
    configMap: { name: {{ include "holdfast.fullname" . }}-pod-policy }
  {{- end }}
{{- end }}
