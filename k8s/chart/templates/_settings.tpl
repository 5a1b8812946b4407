{{/* Environment of a group's servers. */}}

{{/* CPUs that the server's container requests, whole ones. */}}
{{- define "dragoman.cpus" -}}
{{- $cpu := (dig "requests" "cpu" "2" .values.resources) | toString -}}
{{- if hasSuffix "m" $cpu -}}{{ div (trimSuffix "m" $cpu | int) 1000 }}{{- else -}}{{ floor (float64 $cpu) | int }}{{- end -}}
{{- end -}}

{{/* What the chart knows, with the group's settings before it, as JSON. */}}
{{- define "dragoman.settings" -}}
{{- $settings := dict "DRAGOMAN_GRACE_SECONDS" 30 "DRAGOMAN_START_TIMEOUT_SECONDS" 120 "DRAGOMAN_LOG_LEVEL" "info" -}}
{{- /* A CPU is each front's, one their owner's where there are several, and the others are shared by
       the replicas, evenly, as the server itself does it (service/placement.py) but for what is left over. By itself it reads the quota,
       and there is none; where there is one, "auto" is the server's own choice. */ -}}
{{- $replicas := get .values.settings "DRAGOMAN_REPLICAS" | default 1 | toString -}}
{{- $fronts := get .values.settings "DRAGOMAN_FRONTS" | default 1 | int -}}
{{- $beside := ternary 1 (add $fronts 1) (eq $fronts 1) | int -}}
{{- if ne $replicas "auto" -}}
{{- $_ := set $settings "DRAGOMAN_NUM_THREADS" (max 1 (div (sub (include "dragoman.cpus" . | int) $beside) (int $replicas))) -}}
{{- end -}}
{{- with .values.packed.size -}}
{{- $_ := set $settings "DRAGOMAN_CACHE" "/var/cache/dragoman" -}}
{{- $_ := set $settings "DRAGOMAN_PACKED_BYTES" (trimSuffix "i" .) -}}
{{- end -}}
{{- if .values.gpu.enabled -}}
{{- /* There a step costs nearly the same over many rows as over few (k8s/overlays/gpu). */ -}}
{{- $_ := set $settings "DRAGOMAN_MAX_ROWS" 4096 -}}
{{- $_ := set $settings "DRAGOMAN_MAX_SLOTS" 1024 -}}
{{- $_ := set $settings "DRAGOMAN_ADMIT_TOKEN_BUDGET" 16384 -}}
{{- $_ := set $settings "DRAGOMAN_MAX_PENDING_SEGMENTS" 8192 -}}
{{- $_ := set $settings "DRAGOMAN_MAX_REQUESTS" 2048 -}}
{{- $_ := set $settings "DRAGOMAN_MAX_CONNECTIONS" 4096 -}}
{{- end -}}
{{- range $name, $value := .values.settings -}}
{{- $_ := set $settings $name $value -}}
{{- end -}}
{{- $_ := set $settings "DRAGOMAN_HOST" "0.0.0.0" -}}
{{- $_ := set $settings "DRAGOMAN_PORT" 8000 -}}
{{- $_ := set $settings "DRAGOMAN_DEVICE" (ternary "cuda" "cpu" .values.gpu.enabled) -}}
{{- if ne .values.models.source "bundled" -}}
{{- $_ := set $settings "DRAGOMAN_CHECKPOINT" (include "dragoman.served" .) -}}
{{- end -}}
{{- if or .root.Values.apiKeys.toml .root.Values.apiKeys.existingSecret -}}
{{- $_ := set $settings "DRAGOMAN_API_KEYS_DIR" "/etc/dragoman" -}}
{{- end -}}
{{- toJson $settings -}}
{{- end -}}

{{/* Folder of the checkpoints. What is pulled has one for each list of names: pods of an older
     list go on with theirs, and what is taken from the list is not served any more. */}}
{{- define "dragoman.served" -}}
{{- if eq .values.models.source "pull" -}}
/models/served-{{ toJson .values.models.pull.names | sha256sum | trunc 10 }}
{{- else -}}
/models{{ with .values.models.path }}/{{ . }}{{ end }}
{{- end -}}
{{- end -}}

{{/* A whole number of seconds, at least as long as the setting. */}}
{{- define "dragoman.seconds" -}}
{{- ceil (float64 (get .settings .name)) | int -}}
{{- end -}}

{{/* The Secret with the URL of Redis, where there is one: its name. */}}
{{- define "dragoman.redisSecret" -}}
{{- if .Values.redis.url -}}{{ include "dragoman.named" (list (include "dragoman.fullname" .) "redis-url") }}
{{- else -}}{{ .Values.redis.existingSecret.name }}{{- end -}}
{{- end -}}

{{- define "dragoman.keysSecret" -}}
{{- if .Values.apiKeys.toml -}}{{ include "dragoman.named" (list (include "dragoman.fullname" .) "api-keys") }}
{{- else -}}{{ .Values.apiKeys.existingSecret }}{{- end -}}
{{- end -}}
