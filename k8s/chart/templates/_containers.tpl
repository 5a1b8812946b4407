{{/* Parts of pods. */}}

{{- define "dragoman.image" -}}
{{- $image := .values.image -}}
{{- if $image.digest -}}{{ $image.repository }}@{{ $image.digest }}
{{- else -}}{{ $image.repository }}:{{ $image.tag | default (ternary "cuda" "cpu" .values.gpu.enabled) }}{{- end -}}
{{- end -}}

{{- define "dragoman.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
fsGroupChangePolicy: OnRootMismatch
seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{- define "dragoman.confined" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end -}}

{{/* Resources of the server: what is given, else those of k8s/base or k8s/overlays/gpu. */}}
{{- define "dragoman.resources" -}}
{{- $gpu := .values.gpu -}}
{{- $default := dict "requests" (dict "cpu" "2" "memory" (ternary "4Gi" "1Gi" $gpu.enabled)) "limits" (dict "memory" (ternary "8Gi" "2Gi" $gpu.enabled)) -}}
{{- $resources := include "dragoman.merged" (dict "base" $default "over" .values.resources) | fromJson -}}
{{- if $gpu.enabled -}}
{{- $_ := set $resources.limits $gpu.resource (int $gpu.count) -}}
{{- end -}}
{{- toYaml $resources -}}
{{- end -}}

{{/* One of `dragoman pull` for each name; whatever is there already is left alone. */}}
{{- define "dragoman.pulls" -}}
{{- $pull := .values.models.pull -}}
{{- $context := . -}}
{{- range $index, $model := $pull.names }}
- name: pull-{{ $index }}
  image: {{ include "dragoman.image" $context | quote }}
  imagePullPolicy: {{ $context.values.image.pullPolicy }}
  args:
    - pull
    - {{ $model.name | quote }}
    - --to={{ include "dragoman.served" $context }}
    - --yes
    - --replace
    {{- with $model.as }}
    - {{ printf "--as=%s" . | quote }}
    {{- end }}
    {{- with $model.compute }}
    - {{ printf "--compute=%s" . | quote }}
    {{- end }}
    {{- range $model.pairs }}
    - {{ printf "--pair=%s" . | quote }}
    {{- end }}
    {{- with $model.family }}
    - {{ printf "--family=%s" . | quote }}
    {{- end }}
    {{- with $model.acceptLicence }}
    - {{ printf "--accept-licence=%s" . | quote }}
    {{- end }}
  env:
    - {name: DRAGOMAN_CACHE, value: /models/cache}
    # Archives are unpacked here meanwhile, which takes more than /tmp has.
    - {name: TMPDIR, value: /unpacked}
    {{- range $name, $value := $pull.env }}
    - {name: {{ $name }}, value: {{ $value | quote }}}
    {{- end }}
    {{- with $pull.tokenSecret.name }}
    - name: HF_TOKEN
      valueFrom: {secretKeyRef: {name: {{ . }}, key: {{ $pull.tokenSecret.key }}}}
    {{- end }}
  resources: {{- toYaml $pull.resources | nindent 4 }}
  securityContext: {{- include "dragoman.confined" $ | nindent 4 }}
  volumeMounts:
    - {name: tmp, mountPath: /tmp}
    - {name: models, mountPath: /models}
    - {name: unpacked, mountPath: /unpacked}
{{- end }}
{{- end -}}

{{/* Where the checkpoints come from, as a volume. */}}
{{- define "dragoman.modelsVolume" -}}
{{- $models := .values.models -}}
{{- if eq $models.source "pvc" -}}
persistentVolumeClaim: {claimName: {{ $models.pvc.claimName }}, readOnly: {{ $models.pvc.readOnly }}}
{{- else if eq $models.source "image" -}}
image: {reference: {{ $models.image.reference | quote }}, pullPolicy: {{ $models.image.pullPolicy }}}
{{- else if $models.pull.cache.persistent -}}
persistentVolumeClaim: {claimName: {{ include "dragoman.cacheClaim" . }}}
{{- else -}}
emptyDir: {sizeLimit: {{ $models.pull.cache.size }}}
{{- end -}}
{{- end -}}

{{- define "dragoman.cacheClaim" -}}
{{- .values.models.pull.cache.existingClaim | default (include "dragoman.named" (list .fullname "models")) -}}
{{- end -}}

{{/* Pods over zones and nodes. Those of one revision, so that a rollout ends as it should. */}}
{{- define "dragoman.spread" -}}
{{- $context := . -}}
{{- range $key, $topology := dict "zones" "topology.kubernetes.io/zone" "nodes" "kubernetes.io/hostname" }}
{{- $when := get $context.values.spread $key }}
{{- if ne $when "none" }}
- maxSkew: 1
  topologyKey: {{ $topology }}
  whenUnsatisfiable: {{ $when }}
  labelSelector:
    matchLabels: {{- include "dragoman.groupSelector" $context | nindent 6 }}
  matchLabelKeys: [pod-template-hash]
{{- end }}
{{- end }}
{{- end -}}

{{- define "dragoman.priorityClass" -}}
{{- if .values.priorityClass.create -}}{{ .root.Release.Namespace }}-{{ .fullname }}
{{- else -}}{{ .values.priorityClass.name }}{{- end -}}
{{- end -}}
