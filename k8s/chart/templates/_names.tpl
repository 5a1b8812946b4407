{{/* Names and labels. */}}

{{- define "dragoman.fullname" -}}
{{- if .Values.fullnameOverride -}}{{ .Values.fullnameOverride }}
{{- else if contains .Chart.Name .Release.Name -}}{{ .Release.Name }}
{{- else -}}{{ .Release.Name }}-{{ .Chart.Name }}{{- end -}}
{{- end -}}

{{/* A name of the parts given; the longest that a Service may have is 63. */}}
{{- define "dragoman.named" -}}
{{- $name := join "-" (compact .) -}}
{{- if gt (len $name) 63 -}}
{{- fail (printf "the name %s has %d characters; the limit is 63: choose a shorter release, fullnameOverride or group" $name (len $name)) -}}
{{- end -}}
{{- $name -}}
{{- end -}}

{{- define "dragoman.serviceAccount" -}}
{{- .Values.serviceAccount.name | default (ternary (include "dragoman.fullname" .) "default" .Values.serviceAccount.create) -}}
{{- end -}}

{{/* What every selector has, so that two releases live in one namespace: (root, component). */}}
{{- define "dragoman.selector" -}}
app.kubernetes.io/name: {{ .root.Chart.Name }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{/* Labels of an object: (root, component). */}}
{{- define "dragoman.labels" -}}
{{ include "dragoman.selector" . }}
app.kubernetes.io/part-of: {{ .root.Chart.Name }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ .root.Chart.Name }}-{{ .root.Chart.Version }}
{{- end -}}

{{/* The same of one group's servers: a group context. */}}
{{- define "dragoman.groupSelector" -}}
{{ include "dragoman.selector" (dict "root" .root "component" "server") }}
dragoman-group: {{ .group }}
{{- end -}}

{{- define "dragoman.groupLabels" -}}
{{ include "dragoman.labels" (dict "root" .root "component" "server") }}
dragoman-group: {{ .group }}
{{- end -}}
