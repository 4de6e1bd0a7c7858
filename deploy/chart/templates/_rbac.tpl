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
