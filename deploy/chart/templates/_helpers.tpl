{{- define "paddlejob.name" -}}paddle-controller-manager{{- end -}}

{{- define "paddlejob.labels" -}}
app.kubernetes.io/name: paddlejob
control-plane: controller-manager
{{- end -}}

{{- define "paddlejob.subjects" -}}
subjects:
  - kind: ServiceAccount
    name: {{ include "paddlejob.name" . }}
    namespace: {{ .Values.namespace }}
{{- end -}}
