{{- define "weir.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{/* At most 40 characters: a router's children are named after it. */}}
{{- define "weir.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- $name := include "weir.name" . -}}
{{- if contains $name .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "weir.operator" -}}
{{- include "weir.fullname" . }}-operator
{{- end -}}

{{/* Cluster-wide objects carry the namespace, so that two releases of one name can live side by side. */}}
{{- define "weir.clusterName" -}}
{{- printf "%s-%s" (include "weir.operator" .) .Release.Namespace -}}
{{- end -}}

{{- define "weir.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "weir.operator" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- required "serviceAccount.name is needed when serviceAccount.create is false" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "weir.router" -}}
{{- default (include "weir.fullname" .) .Values.router.name -}}
{{- end -}}

{{- define "weir.notifier" -}}
{{- default (printf "%s-ntf" (include "weir.fullname" .) | trunc 40 | trimSuffix "-") .Values.notifier.name -}}
{{- end -}}

{{- define "weir.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}
{{- printf "%s@%s" .repository .digest -}}
{{- else -}}
{{- printf "%s:%s" .repository (default $.Chart.AppVersion .tag) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "weir.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/name: {{ include "weir.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/part-of: weir
{{- end -}}

{{- define "weir.operatorSelector" -}}
app.kubernetes.io/name: {{ include "weir.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: operator
{{- end -}}

{{/* The restricted Pod Security level, for every pod of this chart. */}}
{{- define "weir.podSecurity" -}}
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  fsGroup: 10001
  seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{- define "weir.containerSecurity" -}}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
{{- end -}}

{{- define "weir.pullSecrets" -}}
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- end -}}

{{/* A router's spec as it was given, with the chart's trace settings where it has none of its own. */}}
{{- define "weir.routerSpec" -}}
{{- $spec := deepCopy .spec -}}
{{- with .root.Values.observability.otlp -}}
{{- if and .endpoint (not (dig "telemetry" "traces" nil $spec)) -}}
{{- $traces := dict "endpoint" .endpoint "sampleRatio" .sampleRatio "sessions" .sessions -}}
{{- $spec = mergeOverwrite (dict "telemetry" (dict "traces" $traces)) $spec -}}
{{- end -}}
{{- end -}}
{{- toYaml $spec -}}
{{- end -}}

{{/* What outlives a router, a line each: as its spec tells the operator. */}}
{{- define "weir.kept" -}}
{{- $given := dig "identity" "secretName" "" .spec -}}
{{- $external := dig "redis" "external" nil .spec -}}
{{- $data := or $external (ne "Delete" (dig "redis" "embedded" "storage" "whenDeleted" "" .spec)) -}}
{{- if or $given (ne "Delete" (dig "identity" "whenDeleted" "" .spec)) }}
  Secret {{ default (printf "%s-identity" .name) $given }} (the address depends on it)
{{- end }}
{{- if and .vapid (ne "Delete" (dig "identity" "whenDeleted" "" .spec)) (dig "push" "webPush" "enabled" true .spec) (not (dig "push" "webPush" "secretName" "" .spec)) }}
  Secret {{ .name }}-vapid (the address has its key, and devices know the key)
{{- end }}
{{- if $data }}
  Secret {{ .name }}-store (without it nobody finds what is in Redis)
{{- if not $external }}
  PersistentVolumeClaim data-{{ .name }}-redis-0 (the content of Redis)
{{- end }}
{{- end }}
{{- end -}}

{{/* Edges of a router that helm test can count on. */}}
{{- define "weir.testEdges" -}}
{{- if .root.Values.test.edges -}}
{{- .root.Values.test.edges -}}
{{- else -}}
{{- $replicas := int (dig "replicas" 2 .spec) -}}
{{- if dig "autoscaling" nil .spec -}}
{{- $replicas = int (dig "autoscaling" "minReplicas" 1 .spec) -}}
{{- end -}}
{{- min 2 (max 1 $replicas) -}}
{{- end -}}
{{- end -}}

{{/* Whether the notification router may connect to this release's SMP router: its address names public hosts, or a
Service of the cluster, which only a router that allows private addresses connects to. */}}
{{- define "weir.testQueues" -}}
{{- $private := dig "subscriber" "allowPrivateServers" false .Values.notifier.spec -}}
{{- and .Values.router.enabled (or .Values.router.spec.hosts $private) | not | not -}}
{{- end -}}

{{/* The pod of a hook Job: files/hooks.py with these arguments. */}}
{{- define "weir.hookPod" -}}
{{- include "weir.pullSecrets" .root }}
{{ include "weir.podSecurity" .root }}
containers:
  - name: hook
    image: {{ include "weir.image" .root }}
    imagePullPolicy: {{ .root.Values.image.pullPolicy }}
    command: [python3, /hook/hooks.py]
    args: {{ toJson .arguments }}
    {{- include "weir.containerSecurity" .root | nindent 4 }}
    resources:
      requests: {cpu: 10m, memory: 48Mi}
      limits: {memory: 128Mi}
    volumeMounts:
      - {name: hook, mountPath: /hook, readOnly: true}
volumes:
  - {name: hook, configMap: {name: {{ .configMap }}}}
{{- with .root.Values.operator.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .root.Values.operator.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}
