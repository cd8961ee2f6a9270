{{- define "paddlejob.name" -}}paddle-controller-manager{{- end -}}

{{- define "paddlejob.labels" -}}
app.kubernetes.io/name: paddlejob
control-plane: controller-manager
{{- end -}}

{{- /* YAML reads 0.10 as 0.1 and 1234e5 as 123400000; `--set` does not. */ -}}
{{- define "paddlejob.image" -}}
{{- if kindIs "float64" .Values.image.tag }}{{ fail "image.tag is a number; write it in quotes, or set it with --set-string" }}{{ end -}}
{{ .Values.image.repository }}:{{ default .Chart.AppVersion .Values.image.tag }}
{{- end -}}

{{- define "paddlejob.metricsService" -}}{{ include "paddlejob.name" . }}-metrics{{- end -}}

{{- /* Whether agents in pods are served, for restarts in place; empty if not. Tokens are checked cluster-wide. */ -}}
{{- define "paddlejob.agents" -}}{{ if and .Values.agents (not .Values.watch) }}yes{{ end }}{{- end -}}

{{- /* Whether metrics are served over HTTPS; empty if not. */ -}}
{{- define "paddlejob.metricsTls" -}}{{ if or .Values.monitoring.auth .Values.monitoring.certificateSecret }}yes{{ end }}{{- end -}}

{{- define "paddlejob.certificateSecret" -}}
{{ default (include "paddlejob.metricsService" .) .Values.monitoring.certificateSecret }}
{{- end -}}

{{- define "paddlejob.subjects" -}}
subjects:
  - kind: ServiceAccount
    name: {{ include "paddlejob.name" . }}
    namespace: {{ .Values.namespace }}
{{- end -}}
