{{/* Groups of models: one Deployment each. */}}

{{/* Two maps, the second one's values before the first one's at any depth, as JSON: (base, over). */}}
{{- define "dragoman.merged" -}}
{{- $merged := deepCopy .base -}}
{{- range $key, $value := .over -}}
{{- $before := get $merged $key -}}
{{- if and (kindIs "map" $value) (kindIs "map" $before) -}}
{{- $_ := set $merged $key (include "dragoman.merged" (dict "base" $before "over" $value) | fromJson) -}}
{{- else -}}
{{- $_ := set $merged $key $value -}}
{{- end -}}
{{- end -}}
{{- toJson $merged -}}
{{- end -}}

{{/* JSON of {name: {group, fullname, values}}; the root is added by whoever ranges over it. */}}
{{- define "dragoman.groups" -}}
{{- include "dragoman.check" . -}}
{{- $base := omit .Values "groups" -}}
{{- $groups := dict -}}
{{- range $name, $over := (.Values.groups | default (dict "main" dict)) -}}
{{- $suffix := ternary $name "" (gt (len $.Values.groups) 0) -}}
{{- $values := include "dragoman.merged" (dict "base" $base "over" $over) | fromJson -}}
{{- $fullname := include "dragoman.named" (list (include "dragoman.fullname" $) $suffix) -}}
{{- $_ := set $groups $name (dict "group" $name "fullname" $fullname "values" $values) -}}
{{- end -}}
{{- toJson $groups -}}
{{- end -}}

{{/* A number as it was written: values that went through JSON are floats. */}}
{{- define "dragoman.scalar" -}}
{{- if and (kindIs "float64" .) (eq (floor .) .) -}}{{ int64 . }}{{- else -}}{{ . }}{{- end -}}
{{- end -}}
