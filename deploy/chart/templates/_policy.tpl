{{/* The pod policy as the API server's admission policies read it, as activities/compute/kubernetes/podPolicy/celPolicy.ts writes it: test/cluster/chart holds the two to each other. */}}

{{/* Regular expressions of patterns with `*`. Argument: a list. */}}
{{- define "holdfast.regexes" -}}
{{- $regexes := list }}
{{- range . }}{{ $regexes = append $regexes (printf "(?s)^(?:%s)$" (regexQuoteMeta . | replace "\\*" ".*")) }}{{ end }}
{{- toRawJson $regexes }}
{{- end }}

{{/* The same of `key=value`; without a value, of all values. */}}
{{- define "holdfast.pairRegexes" -}}
{{- $pairs := list }}
{{- range . }}{{ $pairs = append $pairs (ternary . (printf "%s=*" .) (contains "=" .)) }}{{ end }}
{{- include "holdfast.regexes" $pairs }}
{{- end }}

{{/* One policy as a map of CEL. Arguments: root, the policy with its defaults, and optionally its namespaces as JSON. */}}
{{- define "holdfast.policyMap" -}}
{{- $root := index . 0 }}
{{- $policy := index . 1 }}
{{- $file := $root.Files.Get "files/admission-policy.json" | fromJson }}
{{- $own := list ($root.Values.runnerImage | default $file.runnerImage) }}
{{- if ne $root.Values.supervisorImage "none" }}{{ $own = append $own ($root.Values.supervisorImage | default (include "holdfast.image" $root)) }}{{ end }}
{{- with $root.Values.podTemplate.spec }}{{ range concat (.containers | default list) (.initContainers | default list) }}{{ with .image }}{{ $own = append $own . }}{{ end }}{{ end }}{{ end }}
{{- $fields := list }}
{{- range $policy.fields }}{{ $fields = concat $fields (list . (printf "%s.*" .)) }}{{ end }}
{{- $paths := list }}
{{- range $policy.hostPaths }}{{ $paths = append $paths (regexReplaceAll "/+$" . "") }}{{ end }}
{{- $values := dict
  "images" (include "holdfast.regexes" (concat $policy.images $own))
  "namespaces" (gt (len .) 2 | ternary (last .) (include "holdfast.runnersNamespaces" $root))
  "volumes" (toRawJson $policy.volumes)
  "hostPaths" (toRawJson $paths)
  "host" (toRawJson $policy.host)
  "userNamespaces" (toRawJson $policy.userNamespaces)
  "privileged" (toRawJson $policy.privileged)
  "fields" (include "holdfast.regexes" $fields)
  "resources" (toRawJson $policy.resources)
  "store" (toRawJson ($root.Values.settings.HOLDFAST_STORE_VOLUME_CLAIM | default ""))
  "storeSecret" (toRawJson ($root.Values.settings.HOLDFAST_STORE_SECRET | default "")) }}
{{- range list "serviceAccounts" "secrets" "claims" "capabilities" "runtimeClasses" "priorityClasses" }}{{ $values = set $values . (include "holdfast.regexes" (index $policy .)) }}{{ end }}
{{- range list "nodeSelectors" "tolerations" "labels" "annotations" }}{{ $values = set $values . (include "holdfast.pairRegexes" (index $policy .)) }}{{ end }}
{{- $entries := list }}
{{- range $file.order }}{{ $entries = append $entries (printf "%q: dyn(%s)" . (index $values .)) }}{{ end -}}
{ {{- join ", " $entries -}} }
{{- end }}

{{/* The expression of `variables.policy`, with the rules for some runners. */}}
{{- define "holdfast.policyCel" -}}
{{- $root := . }}
{{- $file := .Files.Get "files/admission-policy.json" | fromJson }}
{{- /* Not `merge`, to which false and an empty list are no values. */}}
{{- $base := $file.defaults }}
{{- range $field, $value := .Values.podPolicy }}{{ $base = set $base $field $value }}{{ end }}
{{- $cel := include "holdfast.policyMap" (list . $base) }}
{{- range reverse (.Values.podPolicy.rules | default list) }}
{{- $rule := . }}
{{- $conditions := list }}
{{- range list "sets" "scopes" "credentials" }}
{{- if hasKey $rule . }}
{{- $patterns := index $rule . }}
{{- if eq . "scopes" }}
{{- $patterns = list }}
{{- range index $rule . }}
{{- if hasPrefix "enterprises/" . }}{{ $patterns = append $patterns (printf "enterprise/%s" (trimPrefix "enterprises/" .)) }}
{{- else if eq "*" . }}{{ $patterns = append $patterns . }}
{{- else }}{{ $patterns = append $patterns (printf "%s/%s" (ternary "repository" "organization" (contains "/" .)) .) }}{{ end }}
{{- end }}
{{- end }}
{{- $conditions = append $conditions (printf "%s.exists(p, %s.matches(p))" (include "holdfast.regexes" $patterns) (index $file.selectors .)) }}
{{- end }}
{{- end }}
{{- $policy := deepCopy $base }}
{{- range $field, $value := $rule }}{{ $policy = set $policy $field $value }}{{ end }}
{{- $cel = printf "%s ? %s : (%s)" (join " && " $conditions) (include "holdfast.policyMap" (list $root $policy)) $cel }}
{{- end }}
{{- $cel }}
{{- end }}

{{/* The expression of `variables.policy` for what the hooks of a set's runners create. Arguments: root, namespace. */}}
{{- define "holdfast.jobPodPolicy" -}}
{{- $root := index . 0 }}
{{- $file := $root.Files.Get "files/admission-policy.json" | fromJson }}
{{- $policy := $file.defaults }}
{{- range $field, $value := $root.Values.podPolicy }}{{ $policy = set $policy $field $value }}{{ end }}
{{- range $field, $values := $file.jobPodAllowances }}{{ $policy = set $policy $field (concat (index $policy $field) $values) }}{{ end }}
{{- include "holdfast.policyMap" (list $root $policy (toJson (list (index . 1)))) }}
{{- end }}

{{/* Policies of one account, with their bindings. Arguments: root, name, user, cel, kinds. */}}
{{- define "holdfast.admissionPolicies" -}}
{{- $ := . }}
{{- range .kinds }}
{{- $name := printf "%s%s" $.name .suffix }}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata:
  name: {{ $name }}
  labels:
    {{- include "holdfast.labels" $.root | nindent 4 }}
spec:
  failurePolicy: Fail
  matchConstraints:
    resourceRules:
      - { apiGroups: [""], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [{{ .resource }}] }
  matchConditions:
    - name: by-the-account
      expression: {{ printf "request.userInfo.username == %q" $.user | quote }}
  variables:
    {{- toYaml (prepend .variables (dict "name" "policy" "expression" $.cel)) | nindent 4 }}
  validations:
    {{- range .validations }}
    - expression: {{ toJson .expression }}
      message: {{ printf "not allowed by \"%s\" of Holdfast's pod policy" .field | toJson }}
      reason: Forbidden
    {{- end }}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata:
  name: {{ $name }}
  labels:
    {{- include "holdfast.labels" $.root | nindent 4 }}
spec:
  policyName: {{ $name }}
  validationActions: [Deny]
{{- end }}
{{- end }}
