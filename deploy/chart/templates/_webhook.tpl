{{/* Neither a credential nor a cluster. Of `settings` what it reads, too. */}}
{{- define "holdfast.webhookPod" -}}
automountServiceAccountToken: false
enableServiceLinks: false
terminationGracePeriodSeconds: 30
{{- include "holdfast.podBasics" . }}
containers:
  - name: webhook
    {{- include "holdfast.containerBasics" . | nindent 4 }}
    command: [holdfast, webhook]
    env:
      {{- include "holdfast.temporalEnv" . | trim | nindent 6 }}
      - { name: HOLDFAST_WEBHOOK_SECRET_FILE, value: /etc/holdfast/webhook/secret }
      {{- range $name, $value := pick .Values.settings "HOLDFAST_CONNECT_TIMEOUT" "HOLDFAST_LOG_LEVEL" "HOLDFAST_LOG_FORMAT" }}
      - { name: {{ $name }}, value: {{ include "holdfast.setting" (list $name $value) | quote }} }
      {{- end }}
    ports:
      - { name: health, containerPort: 8080 }
      - { name: deliveries, containerPort: 8081 }
    livenessProbe:
      httpGet: { path: /livez, port: health }
    readinessProbe:
      httpGet: { path: /readyz, port: health }
    resources:
      {{- toYaml .Values.webhook.resources | nindent 6 }}
    volumeMounts:
      - { name: webhook, mountPath: /etc/holdfast/webhook, readOnly: true }
      {{- include "holdfast.secretMounts" (fromYaml (include "holdfast.temporalSecrets" .)) | nindent 6 }}
volumes:
  - name: webhook
    secret: { secretName: {{ .Values.webhook.secretName }} }
  {{- include "holdfast.secretVolumes" (fromYaml (include "holdfast.temporalSecrets" .)) | nindent 2 }}
{{- end }}
