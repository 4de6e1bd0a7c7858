{{/* Which kind of credential githubConfigSecret is. */}}
{{- define "holdfast.githubAuth" -}}
{{- if kindIs "map" .Values.githubConfigSecret -}}
{{- if hasKey .Values.githubConfigSecret "github_app_id" }}app{{ else }}token{{ end }}
{{- else }}{{ .Values.githubAuth }}{{ end }}
{{- end }}

{{/* Empty where there is none. */}}
{{- define "holdfast.githubSecret" -}}
{{- if kindIs "map" .Values.githubConfigSecret }}{{ if .Values.githubConfigSecret }}{{ include "holdfast.fullname" . }}-github{{ end }}{{ else }}{{ .Values.githubConfigSecret }}{{ end }}
{{- end }}

{{/* Address of the REST API, where githubConfigUrl is not at github.com. */}}
{{- define "holdfast.githubApi" -}}
{{- with .Values.githubConfigUrl }}
{{- $url := urlParse . }}
{{- if not (has (lower $url.hostname) (list "github.com" "www.github.com")) }}
{{- if hasSuffix ".ghe.com" $url.hostname }}{{ printf "https://api.%s" $url.host }}{{ else }}{{ printf "%s://%s/api/v3" $url.scheme $url.host }}{{ end }}
{{- end }}
{{- end }}
{{- end }}

{{- define "holdfast.credentialEnv" -}}
{{- $secret := include "holdfast.githubSecret" . }}
{{- $app := and $secret (eq (include "holdfast.githubAuth" .) "app") }}
{{- if not (or $secret .Values.credentials) }}
{{- fail "githubConfigSecret: name a Secret with github_token (or with a GitHub App and githubAuth: app), or give credentials" }}
{{- end }}
{{- $api := .Values.settings.HOLDFAST_GITHUB_URL | default (include "holdfast.githubApi" .) }}
{{- if and $secret (not $app) }}
- { name: HOLDFAST_GITHUB_TOKEN_FILE, value: /etc/holdfast/github/github_token }
{{- if .Values.githubReruns }}
- { name: HOLDFAST_GITHUB_RERUNS, value: 'true' }
{{- end }}
{{- with $api }}
- { name: HOLDFAST_GITHUB_URL, value: {{ . | quote }} }
{{- end }}
{{- end }}
{{- $credentials := deepCopy .Values.credentials }}
{{- if $app }}
{{- range $variable, $key := dict "GITHUB_APP_ID" "github_app_id" "GITHUB_APP_INSTALLATION_ID" "github_app_installation_id" }}
- name: {{ $variable }}
  valueFrom: { secretKeyRef: { name: {{ $secret }}, key: {{ $key }} } }
{{- end }}
{{- $default := dict "server" "github" "type" "app" "appId" "$(GITHUB_APP_ID)" "installationId" "$(GITHUB_APP_INSTALLATION_ID)" "privateKeyFile" "/etc/holdfast/github/github_app_private_key" }}
{{- with $api }}{{ $default = set $default "apiUrl" . }}{{ end }}
{{- if .Values.githubReruns }}{{ $default = set $default "reruns" true }}{{ end }}
{{- $credentials = set $credentials "default" $default }}
{{- end }}
{{- if $credentials }}
- { name: HOLDFAST_CREDENTIALS, value: {{ toJson $credentials | quote }} }
{{- end }}
{{- end }}

{{- define "holdfast.credentialSecrets" -}}
{{- with include "holdfast.githubSecret" . }}
github: {{ . }}
{{- end }}
{{- range .Values.credentialSecrets }}
credential-{{ . }}: {{ . }}
{{- end }}
{{- end }}
