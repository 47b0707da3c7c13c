{{- define "weir.pipeline" -}}
{{- include "weir.fullname" . }}-pipeline
{{- end -}}

{{- define "weir.pipelineImage" -}}
{{- with .Values.pipeline.image -}}
{{- if .digest -}}
{{- printf "%s@%s" .repository .digest -}}
{{- else -}}
{{- printf "%s:%s" .repository (default (default $.Chart.AppVersion $.Values.image.tag) .tag) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "weir.pipelineSelector" -}}
app.kubernetes.io/name: {{ include "weir.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: pipeline
{{- end -}}

{{/* Where the tables are. */}}
{{- define "weir.pipelineTables" -}}
{{- with .Values.pipeline.storage.s3 -}}
{{- if .bucket -}}
{{- printf "s3a://%s/%s" .bucket .path -}}
{{- else -}}
/data/tables
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "weir.pipelineClaim" -}}
{{- default (include "weir.pipeline" .) .Values.pipeline.storage.existingClaim -}}
{{- end -}}

{{/* The routers of this release, as JSON: {"routers": [{name, spec, prefix}]}. */}}
{{- define "weir.pipelineRouters" -}}
{{- $routers := list -}}
{{- if .Values.router.enabled -}}
{{- $routers = append $routers (dict "name" (include "weir.router" .) "spec" .Values.router.spec "prefix" "") -}}
{{- end -}}
{{- if .Values.notifier.enabled -}}
{{- $prefix := dig "redis" "prefix" "ntf" .Values.notifier.spec -}}
{{- $routers = append $routers (dict "name" (include "weir.notifier" .) "spec" .Values.notifier.spec "prefix" $prefix) -}}
{{- end -}}
{{- toJson (dict "routers" $routers) -}}
{{- end -}}

{{/* Volumes of every pod of the pipeline. Each router has a directory with what `weir pipeline ingest --redis-dir` reads. */}}
{{- define "weir.pipelineVolumes" -}}
- {name: data, persistentVolumeClaim: {claimName: {{ include "weir.pipelineClaim" . }}}}
- {name: tmp, emptyDir: {sizeLimit: {{ .Values.pipeline.scratchSize }}}}
{{- range (include "weir.pipelineRouters" . | fromJson).routers }}
- name: redis-{{ .name }}
  projected:
    defaultMode: 0440
    sources:
      - configMap:
          name: {{ include "weir.pipeline" $ }}
          items:
            {{- $external := dig "redis" "external" nil .spec }}
            {{- if not (dig "urlSecret" nil ($external | default dict)) }}
            - {key: {{ .name }}.url, path: url}
            {{- end }}
            - {key: {{ .name }}.prefix, path: prefix}
      {{- if not $external }}
      - secret: {name: {{ .name }}-edge, items: [{key: redis-password, path: password}]}
      {{- else }}
      {{- with $external.urlSecret }}
      - secret: {name: {{ .name }}, items: [{key: {{ default "url" .key }}, path: url}]}
      {{- end }}
      {{- with $external.passwordSecret }}
      - secret: {name: {{ .name }}, items: [{key: {{ default "password" .key }}, path: password}]}
      {{- end }}
      {{- end }}
{{- end }}
{{- end -}}

{{- define "weir.pipelineMounts" -}}
- {name: data, mountPath: /data}
- {name: tmp, mountPath: /tmp}
{{- range (include "weir.pipelineRouters" . | fromJson).routers }}
- {name: redis-{{ .name }}, mountPath: /etc/weir/redis/{{ .name }}, readOnly: true}
{{- end }}
{{- end -}}

{{/* Keys of the bucket, and where it is, by the names of Amazon's own tools. */}}
{{- define "weir.pipelineEnvironment" -}}
- name: POD_IP
  valueFrom: {fieldRef: {fieldPath: status.podIP}}
- name: POD_NAME
  valueFrom: {fieldRef: {fieldPath: metadata.name}}
{{- with .Values.pipeline.storage.s3 }}
{{- if .bucket }}
- {name: AWS_REGION, value: {{ .region | quote }}}
{{- if .endpoint }}
- {name: AWS_ENDPOINT_URL, value: {{ .endpoint | quote }}}
{{- if hasPrefix "http://" .endpoint }}
- {name: AWS_ALLOW_HTTP, value: "true"}
{{- end }}
{{- end }}
{{- if .secretName }}
- name: AWS_ACCESS_KEY_ID
  valueFrom: {secretKeyRef: {name: {{ .secretName }}, key: AWS_ACCESS_KEY_ID}}
- name: AWS_SECRET_ACCESS_KEY
  valueFrom: {secretKeyRef: {name: {{ .secretName }}, key: AWS_SECRET_ACCESS_KEY}}
{{- end }}
{{- end }}
{{- end }}
{{- with .Values.pipeline.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* Options of a command that starts Spark. With executors: where Kubernetes is, and what an executor is. */}}
{{- define "weir.pipelineSpark" -}}
- --memory={{ .Values.pipeline.memory }}
{{- if .Values.pipeline.sparkUI }}
- --spark-ui
{{- end }}
{{- if eq .Values.pipeline.mode "spark" }}
{{- $account := "/var/run/secrets/kubernetes.io/serviceaccount" }}
- --master=k8s://https://kubernetes.default.svc
- --conf=spark.kubernetes.authenticate.caCertFile={{ $account }}/ca.crt
- --conf=spark.kubernetes.authenticate.oauthTokenFile={{ $account }}/token
- --conf=spark.kubernetes.namespace={{ .Release.Namespace }}
- --conf=spark.kubernetes.driver.pod.name=$(POD_NAME)
- --conf=spark.driver.host=$(POD_IP)
- --conf=spark.driver.bindAddress=$(POD_IP)
- --conf=spark.driver.port=7078
- --conf=spark.driver.blockManager.port=7079
- --conf=spark.kubernetes.container.image={{ include "weir.pipelineImage" . }}
- --conf=spark.kubernetes.container.image.pullPolicy={{ .Values.image.pullPolicy }}
{{- with .Values.image.pullSecrets }}
- --conf=spark.kubernetes.container.image.pullSecrets={{ join "," . }}
{{- end }}
- --conf=spark.kubernetes.executor.podTemplateFile=/etc/weir/pipeline/executor.yaml
- --conf=spark.kubernetes.executor.podTemplateContainerName=executor
{{- with .Values.pipeline.executors }}
- --conf=spark.executor.instances={{ .instances }}
- --conf=spark.executor.cores={{ .cores }}
- --conf=spark.executor.memory={{ .memory }}
- --conf=spark.executor.memoryOverhead={{ .memoryOverhead }}
- --conf=spark.kubernetes.executor.request.cores={{ .requestCPU }}
{{- end }}
{{- end }}
{{- range $name, $value := .Values.pipeline.conf }}
- --conf={{ $name }}={{ $value }}
{{- end }}
{{- end -}}

{{/* One container: (dict "root" . "name" "ingest" "arguments" (list …)). */}}
{{- define "weir.pipelineContainer" -}}
- name: {{ .name }}
  image: {{ include "weir.pipelineImage" .root }}
  imagePullPolicy: {{ .root.Values.image.pullPolicy }}
  args:
    - pipeline
    - {{ .name }}
    - --tables={{ include "weir.pipelineTables" .root }}
    {{- range .arguments }}
    - {{ . | quote }}
    {{- end }}
    {{- if ne .name "report" }}
    {{- include "weir.pipelineSpark" .root | nindent 4 }}
    {{- end }}
  env:
    {{- include "weir.pipelineEnvironment" .root | nindent 4 }}
  {{- include "weir.containerSecurity" .root | nindent 2 }}
  resources:
    {{- toYaml .root.Values.pipeline.resources | nindent 4 }}
  volumeMounts:
    {{- include "weir.pipelineMounts" .root | nindent 4 }}
    {{- if eq .root.Values.pipeline.mode "spark" }}
    - {name: template, mountPath: /etc/weir/pipeline, readOnly: true}
    {{- end }}
{{- end -}}

{{- define "weir.pipelineIngest" -}}
{{- $arguments := list -}}
{{- range (include "weir.pipelineRouters" .root | fromJson).routers -}}
{{- $arguments = append $arguments (printf "--redis-dir=/etc/weir/redis/%s" .name) -}}
{{- end -}}
{{- include "weir.pipelineContainer" (dict "root" .root "name" "ingest" "arguments" (concat $arguments .arguments)) -}}
{{- end -}}

{{- define "weir.pipelineTablesRun" -}}
{{- $keep := .Values.pipeline.retention -}}
{{- $arguments := list (printf "--keep-bronze=%v" $keep.bronze) (printf "--keep-silver=%v" $keep.silver) (printf "--keep-gold=%v" $keep.gold) -}}
{{- include "weir.pipelineContainer" (dict "root" . "name" "tables" "arguments" $arguments) -}}
{{- end -}}

{{- define "weir.pipelineReport" -}}
{{- $arguments := list "--out=/data/report.html" (printf "--days=%v" .Values.pipeline.report.days) -}}
{{- include "weir.pipelineContainer" (dict "root" . "name" "report" "arguments" $arguments) -}}
{{- end -}}

{{/* What a pod of the pipeline is beside its containers. Only a driver of executors talks to Kubernetes. */}}
{{- define "weir.pipelinePod" -}}
serviceAccountName: {{ include "weir.pipeline" . }}
automountServiceAccountToken: {{ eq .Values.pipeline.mode "spark" }}
enableServiceLinks: false
{{- include "weir.pullSecrets" . }}
{{ include "weir.podSecurity" . }}
{{- with .Values.pipeline.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .Values.pipeline.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.pipeline.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
volumes:
  {{- include "weir.pipelineVolumes" . | nindent 2 }}
  {{- if eq .Values.pipeline.mode "spark" }}
  - {name: template, configMap: {name: {{ include "weir.pipeline" . }}, items: [{key: executor.yaml, path: executor.yaml}]}}
  {{- end }}
{{- end -}}

{{- define "weir.pipelineLabels" -}}
{{- include "weir.labels" . }}
app.kubernetes.io/component: pipeline
{{- with .Values.pipeline.podLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}
