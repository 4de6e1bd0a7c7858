{{/* Namespaces of the sets whose jobs have pods of their own, each with one set, as JSON. Fails where two things share one. */}}
{{- define "holdfast.jobPodNamespaces" -}}
{{- $taken := prepend .Values.namespaces .Values.runnersNamespace }}
{{- $names := list }}
{{- range .Values.sets }}
{{- if hasPrefix "kubernetes" ((.containerMode | default dict).type | default "") }}
{{- $name := required (printf "sets: %s has containerMode %s, whose jobs may read the Secrets and create pods in their namespace: set containerMode.namespace, a namespace for this set alone" .name .containerMode.type) .containerMode.namespace }}
{{- if or (has $name $taken) (eq $name $.Release.Namespace) }}
{{- fail (printf "sets: containerMode.namespace of %s is %s, which is also for something else: name a namespace for this set alone" .name $name) }}
{{- end }}
{{- if eq (toString ((.set | default dict).template | default dict).ephemeral) "false" }}
{{- fail (printf "sets: %s has containerMode %s and ephemeral: false: a job could read the registration token of the static runner, so remove one of them" .name .containerMode.type) }}
{{- end }}
{{- $taken = append $taken $name }}
{{- $names = append $names $name }}
{{- else if (.containerMode | default dict).namespace }}
{{- fail (printf "sets: containerMode.namespace of %s is only for the types kubernetes and kubernetes-novolume: remove it, or set containerMode.type to one of them" .name) }}
{{- end }}
{{- end }}
{{- toJson $names }}
{{- end }}

{{/* All namespaces of runners, as JSON. */}}
{{- define "holdfast.runnersNamespaces" -}}
{{- toJson (concat (list .Values.runnersNamespace) .Values.namespaces (fromJsonArray (include "holdfast.jobPodNamespaces" .)) | uniq) }}
{{- end }}

{{/* A role of this name to the account of a part. */}}
{{- define "holdfast.binding" -}}
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: {{ .role }}
  namespace: {{ .namespace }}
  labels:
    {{- include "holdfast.labels" .root | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: Role
  name: {{ .role }}
subjects:
  - kind: ServiceAccount
    name: {{ include "holdfast.fullname" .root }}-{{ .part }}
    namespace: {{ .root.Release.Namespace }}
{{- end }}

{{/* To the UID of kube-system, which says which cluster it is. The name is one of many releases' there. */}}
{{- define "holdfast.placeRights" -}}
{{- $role := printf "%s-%s-in-%s" (include "holdfast.fullname" .root) .part .root.Release.Namespace -}}
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: {{ $role }}
  namespace: kube-system
  labels:
    {{- include "holdfast.labels" .root | nindent 4 }}
rules:
  - apiGroups: [""]
    resources: [namespaces]
    resourceNames: [kube-system]
    verbs: [get]
---
{{ include "holdfast.binding" (dict "root" .root "part" .part "role" $role "namespace" "kube-system") }}
{{- end }}

{{/* A name of the whole cluster's: that of the plain manifest for the plain release. */}}
{{- define "holdfast.nodesRole" -}}
{{ include "holdfast.fullname" . }}-worker-nodes{{ if ne .Release.Namespace "holdfast" }}-{{ .Release.Namespace }}{{ end }}
{{- end }}
