{{/* What the schema cannot say: values that contradict each other, all of them told at once. */}}
{{- define "dragoman.check" -}}
{{- $problems := list -}}
{{- $v := .Values -}}
{{- if and $v.apiKeys.toml $v.apiKeys.existingSecret -}}
{{- $problems = append $problems "apiKeys.toml and apiKeys.existingSecret are both given" -}}
{{- end -}}
{{- $redis := compact (list (ternary "redis.url" "" (ne $v.redis.url "")) (ternary "redis.existingSecret" "" (ne $v.redis.existingSecret.name "")) (ternary "redis.bundled" "" $v.redis.bundled.enabled)) -}}
{{- if gt (len $redis) 1 -}}
{{- $problems = append $problems (printf "%s are all given; one is enough" (join ", " $redis)) -}}
{{- end -}}
{{- if and $v.reload.enabled (not $v.reload.keySecret.name) -}}
{{- $problems = append $problems "reload.enabled needs reload.keySecret.name: a Secret with an administrator's key" -}}
{{- end -}}
{{- if and $v.reload.enabled (not $v.apiKeys.toml) (not $v.apiKeys.existingSecret) -}}
{{- $problems = append $problems "reload.enabled needs apiKeys: without keys nobody is an administrator" -}}
{{- end -}}
{{- if ne $v.service.type "ClusterIP" -}}
{{- if and $v.networkPolicy.enabled (not $v.networkPolicy.from) -}}
{{- $problems = append $problems (printf "service.type is %s, and the NetworkPolicy lets nobody in from outside: name them in networkPolicy.from, {ipBlock: {cidr: 0.0.0.0/0}} for everybody" $v.service.type) -}}
{{- end -}}
{{- else if $v.service.externalTrafficPolicy -}}
{{- $problems = append $problems (printf "service.externalTrafficPolicy is %s, and service.type is ClusterIP, which has none" $v.service.externalTrafficPolicy) -}}
{{- end -}}
{{- /* Of Deployments and Services, after the release's: whose else each is. */ -}}
{{- $taken := dict -}}
{{- if $v.router.enabled -}}{{- $_ := set $taken "router" "the router's own objects" -}}{{- end -}}
{{- if $v.redis.bundled.enabled -}}{{- $_ := set $taken "redis" "the small Redis's own objects" -}}{{- end -}}
{{- range $name, $_ := $v.groups -}}
{{- $_ := set $taken (printf "%s-pods" $name) (printf "the Service of each pod of groups.%s" $name) -}}
{{- if $v.router.enabled -}}
{{- $_ := set $taken (printf "%s-ready" $name) (printf "the Service of each ready pod of groups.%s" $name) -}}
{{- end -}}
{{- end -}}
{{- range $name, $_ := $v.groups -}}
{{- with get $taken $name -}}
{{- $problems = append $problems (printf "groups.%s has the name of %s" $name .) -}}
{{- end -}}
{{- end -}}
{{- $hosts := dict -}}
{{- with $v.router -}}
{{- if and .enabled (not $v.groups) -}}
{{- $problems = append $problems "router.enabled needs groups: one at least, whose pods it asks" -}}
{{- end -}}
{{- with ternary (include "dragoman.overTmp" (dict "at" "" "who" ", for the router's pods" "values" (dict "tmpSize" $v.tmpSize "settings" (omit $v.settings "DRAGOMAN_DOCUMENTS_FOLDER")))) "" .enabled -}}
{{- $problems = append $problems . -}}
{{- end -}}
{{- if gt (int .minReplicas) (int .maxReplicas) -}}
{{- $problems = append $problems (printf "router.minReplicas is %d; it must be at most maxReplicas (%d)" (int .minReplicas) (int .maxReplicas)) -}}
{{- end -}}
{{- with ternary (include "dragoman.overLimit" (dict "at" "router.resources" "resources" .resources)) "" .enabled -}}
{{- $problems = append $problems . -}}
{{- end -}}
{{- if .enabled -}}
{{- $problems = concat $problems (include "dragoman.contradictions" (dict "at" "" "who" ", for the router's pods" "settings" $v.settings) | fromJsonArray) -}}
{{- end -}}
{{- if and .ingress.enabled (not .ingress.host) -}}
{{- $problems = append $problems "router.ingress.enabled needs router.ingress.host" -}}
{{- end -}}
{{- if and .httpRoute.enabled (not (and .httpRoute.parentRefs .httpRoute.hostnames)) -}}
{{- $problems = append $problems "router.httpRoute.enabled needs router.httpRoute.parentRefs and router.httpRoute.hostnames" -}}
{{- end -}}
{{- with ternary (include "dragoman.overTimeout" (dict "at" "router." "route" .httpRoute)) "" .httpRoute.enabled -}}
{{- $problems = append $problems . -}}
{{- end -}}
{{- range $host := concat (ternary (list .ingress.host) list .ingress.enabled) (ternary .httpRoute.hostnames list .httpRoute.enabled) -}}
{{- $_ := set $hosts $host "router" -}}
{{- end -}}
{{- end -}}
{{- range $name, $over := ($v.groups | default (dict "" dict)) -}}
{{- $at := ternary "" (printf "groups.%s." $name) (eq $name "") -}}
{{- $g := include "dragoman.merged" (dict "base" (omit $v "groups") "over" $over) | fromJson -}}
{{- if and (eq $g.models.source "pvc") (not $g.models.pvc.claimName) -}}
{{- $problems = append $problems (printf "%smodels.source is pvc, and %smodels.pvc.claimName is empty" $at $at) -}}
{{- end -}}
{{- if and (eq $g.models.source "image") (not $g.models.image.reference) -}}
{{- $problems = append $problems (printf "%smodels.source is image, and %smodels.image.reference is empty" $at $at) -}}
{{- end -}}
{{- if and (eq $g.models.source "pull") (not $g.models.pull.names) -}}
{{- $problems = append $problems (printf "%smodels.source is pull, and %smodels.pull.names is empty" $at $at) -}}
{{- end -}}
{{- if and $g.gpu.enabled (eq $g.autoscaling.kind "cpu") -}}
{{- $problems = append $problems (printf "%sautoscaling.kind is cpu, whose load says nothing of a GPU's: keda or none" $at) -}}
{{- end -}}
{{- with include "dragoman.overLimit" (dict "at" (printf "%sresources" $at) "resources" (include "dragoman.resources" (dict "values" $g) | fromYaml)) -}}
{{- $problems = append $problems . -}}
{{- end -}}
{{- if eq $g.models.source "pull" -}}
{{- with include "dragoman.overLimit" (dict "at" (printf "%smodels.pull.resources" $at) "resources" $g.models.pull.resources) -}}
{{- $problems = append $problems . -}}
{{- end -}}
{{- end -}}
{{- with include "dragoman.overTmp" (dict "at" $at "values" $g) -}}
{{- $problems = append $problems . -}}
{{- end -}}
{{- $problems = concat $problems (include "dragoman.contradictions" (dict "at" $at "settings" $g.settings) | fromJsonArray) -}}
{{- $problems = concat $problems (include "dragoman.misplaced" (dict "at" $at "values" $g) | fromJsonArray) -}}
{{- range $setting := list "DRAGOMAN_KEY_REQUIRED" "DRAGOMAN_METRICS_KEY_REQUIRED" -}}
{{- if and (eq (get $g.settings $setting | toString) "true") (not $v.apiKeys.toml) (not $v.apiKeys.existingSecret) -}}
{{- $problems = append $problems (printf "%ssettings.%s is true, and there are no apiKeys" $at $setting) -}}
{{- end -}}
{{- end -}}
{{- if and (eq (get $g.settings "DRAGOMAN_METRICS_KEY_REQUIRED" | toString) "true") $v.serviceMonitor.enabled (not $v.serviceMonitor.keySecret.name) -}}
{{- $problems = append $problems (printf "%ssettings.DRAGOMAN_METRICS_KEY_REQUIRED is true, and serviceMonitor.keySecret.name is empty: every scrape would be refused" $at) -}}
{{- end -}}
{{- $replicas := get $g.settings "DRAGOMAN_REPLICAS" | default 1 | include "dragoman.scalar" -}}
{{- $count := int $g.gpu.count -}}
{{- if and $g.gpu.enabled (eq $g.gpu.resource "nvidia.com/gpu") (not (has $replicas (list "auto" (toString $count)))) -}}
{{- $problems = append $problems (printf "%sgpu.count is %d, and %ssettings.DRAGOMAN_REPLICAS is %s: give an engine to each GPU, %d or auto" $at $count $at $replicas $count) -}}
{{- end -}}
{{- $quota := dig "limits" "cpu" "" $g.resources | toString -}}
{{- if and (not $g.gpu.enabled) (not $quota) (eq (get $g.settings "DRAGOMAN_REPLICAS" | toString) "auto") -}}
{{- $problems = append $problems (printf "%ssettings.DRAGOMAN_REPLICAS is auto, which would count the node's processors: give a number, or %sresources.limits.cpu" $at $at) -}}
{{- end -}}
{{- if gt (int $g.autoscaling.minReplicas) (int $g.autoscaling.maxReplicas) -}}
{{- $problems = append $problems (printf "%sautoscaling.minReplicas is %d; it must be at most maxReplicas (%d)" $at (int $g.autoscaling.minReplicas) (int $g.autoscaling.maxReplicas)) -}}
{{- end -}}
{{- if and $g.ingress.enabled (not $g.ingress.host) -}}
{{- $problems = append $problems (printf "%singress.enabled needs %singress.host" $at $at) -}}
{{- end -}}
{{- if and $g.httpRoute.enabled (not (and $g.httpRoute.parentRefs $g.httpRoute.hostnames)) -}}
{{- $problems = append $problems (printf "%shttpRoute.enabled needs %shttpRoute.parentRefs and %shttpRoute.hostnames" $at $at $at) -}}
{{- end -}}
{{- with ternary (include "dragoman.overTimeout" (dict "at" $at "route" $g.httpRoute)) "" $g.httpRoute.enabled -}}
{{- $problems = append $problems . -}}
{{- end -}}
{{- range $host := concat (ternary (list $g.ingress.host) list $g.ingress.enabled) (ternary $g.httpRoute.hostnames list $g.httpRoute.enabled) -}}
{{- if and $host (hasKey $hosts $host) (ne (get $hosts $host) $name) -}}
{{- $problems = append $problems (printf "%s and %s have the same host %s: give it to the router, or to one group" (get $hosts $host) $name $host) -}}
{{- end -}}
{{- $_ := set $hosts $host $name -}}
{{- end -}}
{{- end -}}
{{- if $problems -}}
{{- fail (printf "\n- %s" (join "\n- " $problems)) -}}
{{- end -}}
{{- end -}}
