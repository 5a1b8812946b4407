{{/* Pods beside the servers: the router, the small Redis, the reload. What the release says of nodes is
     theirs too, what a group says is not. */}}

{{/* An image of the release; none of them has a use for a GPU's: the root. */}}
{{- define "dragoman.helperImage" -}}
{{- include "dragoman.image" (dict "values" (dict "image" .Values.image "gpu" (dict "enabled" false))) -}}
{{- end -}}

{{/* The priority of such a pod: the name of its class. */}}
{{- define "dragoman.helperPriorityClass" -}}
{{- include "dragoman.priorityClass" (dict "root" . "fullname" (include "dragoman.fullname" .) "values" .Values) -}}
{{- end -}}

{{/* Where such a pod runs. Of an affinity the nodes alone: the rest is about pods of servers. */}}
{{- define "dragoman.placed" -}}
{{- with include "dragoman.helperPriorityClass" . }}
priorityClassName: {{ . }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.affinity.nodeAffinity }}
affinity:
  nodeAffinity: {{- toYaml . | nindent 4 }}
{{- end }}
{{- /* A GPU's node may be the only one that is selected. */}}
{{- $gpuNodes := ternary (include "dragoman.gpuTolerations" . | fromYamlArray) list (and .Values.gpu.enabled (not (empty .Values.nodeSelector))) }}
{{- with concat $gpuNodes .Values.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* Of nodes whose GPUs keep other pods away. */}}
{{- define "dragoman.gpuTolerations" -}}
- {key: nvidia.com/gpu, operator: Exists, effect: NoSchedule}
{{- end -}}
