{{/* Places where a server can write: its root is read-only. */}}

{{/* Of the mounts of a group's servers the one that holds a path, as JSON of {path, volume, isShared};
     nothing where nothing can be written: (path, values). */}}
{{- define "dragoman.writable" -}}
{{- $path := clean .path -}}
{{- $mounts := list (dict "path" "/tmp" "volume" "tmp") -}}
{{- if .values.packed.size -}}
{{- $mounts = append $mounts (dict "path" "/var/cache/dragoman" "volume" "packed") -}}
{{- end -}}
{{- $own := list -}}
{{- range .values.extraVolumes -}}
{{- if or (hasKey . "emptyDir") (hasKey . "ephemeral") -}}{{- $own = append $own .name -}}{{- end -}}
{{- end -}}
{{- range .values.extraVolumeMounts -}}
{{- $mounts = append $mounts (dict "path" (clean .mountPath) "volume" .name "isReadOnly" .readOnly "isShared" (not (has .name $own))) -}}
{{- end -}}
{{- $holds := dict "path" "" "isReadOnly" true -}}
{{- range $mounts -}}
{{- if and (or (eq $path .path) (hasPrefix (printf "%s/" .path) $path)) (gt (len .path) (len $holds.path)) -}}
{{- $holds = . -}}
{{- end -}}
{{- end -}}
{{- if not $holds.isReadOnly -}}{{- toJson $holds -}}{{- end -}}
{{- end -}}

{{/* The volume with the documents of a group, where it outlives its pods, so that one server at a time
     may have it: its name; else nothing. */}}
{{- define "dragoman.documentsVolume" -}}
{{- with get .values.settings "DRAGOMAN_DOCUMENTS_FOLDER" -}}
{{- with include "dragoman.writable" (dict "path" . "values" $.values) | fromJson -}}
{{- if .isShared -}}{{ .volume }}{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* JSON of what is wrong with the places of a group's files: (at, values). */}}
{{- define "dragoman.misplaced" -}}
{{- $at := .at -}}
{{- $values := .values -}}
{{- $problems := list -}}
{{- range $name := list "DRAGOMAN_DOCUMENTS_FOLDER" "DRAGOMAN_GLOSSARIES" "DRAGOMAN_SUGGESTIONS" -}}
{{- with get $values.settings $name -}}
{{- if not (include "dragoman.writable" (dict "path" . "values" $values)) -}}
{{- $problems = append $problems (printf "%ssettings.%s is %s, where nothing can be written: mount a volume that holds it (%sextraVolumes, %sextraVolumeMounts)" $at $name . $at $at) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- with include "dragoman.documentsVolume" (dict "values" $values) -}}
{{- if or (ne $values.autoscaling.kind "none") (gt (int $values.replicas) 1) -}}
{{- $problems = append $problems (printf "%ssettings.DRAGOMAN_DOCUMENTS_FOLDER is on the volume %s, which pods share, and a folder is one server's at a time: %sautoscaling.kind none and %sreplicas 1" $at . $at $at) -}}
{{- end -}}
{{- end -}}
{{- $names := list -}}
{{- range $values.extraVolumes -}}{{- $names = append $names .name -}}{{- end -}}
{{- range $values.extraVolumeMounts -}}
{{- if not (has .name $names) -}}
{{- $problems = append $problems (printf "%sextraVolumeMounts has %s, which is none of %sextraVolumes" $at .name $at) -}}
{{- end -}}
{{- end -}}
{{- toJson $problems -}}
{{- end -}}
