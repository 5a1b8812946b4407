{{/* Amounts of memory, of disk and of time, as Kubernetes and the server write them. */}}

{{/* Bytes of a quantity such as 256Mi or 1.5G; nothing where it is written in another way. */}}
{{- define "dragoman.bytes" -}}
{{- $quantity := include "dragoman.scalar" . -}}
{{- if regexMatch "^[0-9]+(\\.[0-9]+)?([KMGTPE]i|[kMGTPE])?$" $quantity -}}
{{- $bytes := regexFind "^[0-9.]+" $quantity | float64 -}}
{{- $unit := regexFind "[A-Za-z]+$" $quantity -}}
{{- range until (index (dict "" 0 "k" 1 "K" 1 "M" 2 "G" 3 "T" 4 "P" 5 "E" 6) (trimSuffix "i" $unit)) -}}
{{- $bytes = mulf $bytes (ternary 1024 1000 (hasSuffix "i" $unit)) -}}
{{- end -}}
{{- printf "%.0f" $bytes -}}
{{- end -}}
{{- end -}}

{{/* The same of a setting: the server counts in 1024 whichever way a unit is written, 20M, 20MB or 20MiB. */}}
{{- define "dragoman.settingBytes" -}}
{{- regexReplaceAll "([KMGT])$" (regexReplaceAll "i?B$" . "") "${1}i" | include "dragoman.bytes" -}}
{{- end -}}

{{/* A problem, where documents do not fit into /tmp: (at, values) of a group; who, if it is none. */}}
{{- define "dragoman.overTmp" -}}
{{- $settings := .values.settings -}}
{{- $total := get $settings "DRAGOMAN_DOCUMENTS_TOTAL_BYTES" | default "128M" | include "dragoman.scalar" -}}
{{- $bytes := include "dragoman.settingBytes" $total -}}
{{- $folder := get $settings "DRAGOMAN_DOCUMENTS_FOLDER" | default "/tmp" -}}
{{- $isKeptThere := and (ne (get $settings "DRAGOMAN_DOCUMENTS" | toString) "false") (regexMatch "^/tmp(/|$)" $folder) -}}
{{- $room := include "dragoman.bytes" .values.tmpSize -}}
{{- if and $isKeptThere (lt (float64 $room) (float64 $bytes)) -}}
{{- printf "%stmpSize is %s; it must be at least %ssettings.DRAGOMAN_DOCUMENTS_TOTAL_BYTES (%s)%s" .at .values.tmpSize .at $total (.who | default "") -}}
{{- end -}}
{{- end -}}

{{/* A problem, where a container requests more memory than its limit: (at, resources). */}}
{{- define "dragoman.overLimit" -}}
{{- $request := dig "requests" "memory" "" .resources -}}
{{- $limit := dig "limits" "memory" "" .resources -}}
{{- $bytes := include "dragoman.bytes" $request -}}
{{- $most := include "dragoman.bytes" $limit -}}
{{- if and $bytes $most (gt (float64 $bytes) (float64 $most)) -}}
{{- printf "%s.requests.memory is %s; it must be at most %s.limits.memory (%s)" .at (include "dragoman.scalar" $request) .at (include "dragoman.scalar" $limit) -}}
{{- end -}}
{{- end -}}

{{/* Milliseconds of a duration as Gateway API writes it, 1m30s for one. */}}
{{- define "dragoman.milliseconds" -}}
{{- $sum := 0.0 -}}
{{- range regexFindAll "[0-9]+(ms|[hms])" . -1 -}}
{{- $unit := index (dict "ms" 1 "s" 1000 "m" 60000 "h" 3600000) (regexFind "[a-z]+$" .) -}}
{{- $sum = addf $sum (mulf (regexFind "^[0-9]+" . | float64) $unit) -}}
{{- end -}}
{{- printf "%.0f" $sum -}}
{{- end -}}

{{/* A problem, where a gateway would wait longer for a server than its client for it: (at, route).
     A request of 0s has no limit. */}}
{{- define "dragoman.overTimeout" -}}
{{- with .route.timeouts -}}
{{- $request := include "dragoman.milliseconds" .request | float64 -}}
{{- if and .request (gt $request 0.0) (gt (include "dragoman.milliseconds" .backendRequest | float64) $request) -}}
{{- printf "%shttpRoute.timeouts.backendRequest is %s; it must be at most %shttpRoute.timeouts.request (%s)" $.at .backendRequest $.at .request -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Memory of a Redis whose counts may take the given one (64Mi): twice, as what is freed is not
     given back at once and connections have buffers, and 256Mi at least. */}}
{{- define "dragoman.redisLimit" -}}
{{- $mebibytes := mul (regexFind "^[0-9]+" . | int64) (ternary 1024 1 (hasSuffix "Gi" .)) -}}
{{- max 256 (mul 2 $mebibytes) }}Mi
{{- end -}}
