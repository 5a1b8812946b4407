{{/* Settings of the server that are possible by themselves, and not together (service/settings.py). */}}

{{/* JSON of what is wrong: (at, settings) of a group; who, if it is none. */}}
{{- define "dragoman.contradictions" -}}
{{- $at := .at -}}
{{- $who := .who | default "" -}}
{{- $problems := list -}}
{{- range $name := list "DRAGOMAN_DETECTION" "DRAGOMAN_PIVOT" "DRAGOMAN_TRACES" -}}
{{- if kindIs "bool" (get $.settings $name) -}}
{{- $problems = append $problems (printf "%ssettings.%s is %v, as YAML reads off, no, on and yes: write it in quotes" $at $name (get $.settings $name)) -}}
{{- end -}}
{{- end -}}
{{- $defaults := dict "DRAGOMAN_BEAM_SIZE" 4 "DRAGOMAN_MAX_BEAM_SIZE" 16 "DRAGOMAN_TIMEOUT_SECONDS" 60 "DRAGOMAN_MAX_TIMEOUT_SECONDS" 300 "DRAGOMAN_DOCUMENTS_MAX_BYTES" "20M" "DRAGOMAN_DOCUMENTS_TOTAL_BYTES" "128M" -}}
{{- $settings := merge (deepCopy .settings) $defaults -}}
{{- range $name := list "BEAM_SIZE" "TIMEOUT_SECONDS" -}}
{{- $value := get $settings (printf "DRAGOMAN_%s" $name) | include "dragoman.scalar" -}}
{{- $limit := get $settings (printf "DRAGOMAN_MAX_%s" $name) | include "dragoman.scalar" -}}
{{- if gt (float64 $value) (float64 $limit) -}}
{{- $problems = append $problems (printf "%ssettings.DRAGOMAN_%s is %s; it must be at most %ssettings.DRAGOMAN_MAX_%s (%s)%s" $at $name $value $at $name $limit $who) -}}
{{- end -}}
{{- end -}}
{{- $total := get $settings "DRAGOMAN_DOCUMENTS_TOTAL_BYTES" | include "dragoman.scalar" -}}
{{- $most := get $settings "DRAGOMAN_DOCUMENTS_MAX_BYTES" | include "dragoman.scalar" -}}
{{- $isKept := ne (get $settings "DRAGOMAN_DOCUMENTS" | toString) "false" -}}
{{- if and $isKept (lt (include "dragoman.settingBytes" $total | float64) (include "dragoman.settingBytes" $most | float64)) -}}
{{- $problems = append $problems (printf "%ssettings.DRAGOMAN_DOCUMENTS_TOTAL_BYTES is %s; it must be at least %ssettings.DRAGOMAN_DOCUMENTS_MAX_BYTES (%s)%s" $at $total $at $most $who) -}}
{{- end -}}
{{- $fronts := get $settings "DRAGOMAN_FRONTS" | default 1 | int -}}
{{- if and (gt $fronts 1) (get $settings "DRAGOMAN_MEMORY_BUDGET") -}}
{{- $problems = append $problems (printf "%ssettings.DRAGOMAN_FRONTS is %d and %ssettings.DRAGOMAN_MEMORY_BUDGET is set; with models that are loaded on demand there can be one front%s" $at $fronts $at $who) -}}
{{- end -}}
{{- toJson $problems -}}
{{- end -}}
