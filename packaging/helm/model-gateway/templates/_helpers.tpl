{{- define "model-gateway.name" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "model-gateway.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "model-gateway.labels" -}}
{{ include "model-gateway.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{/* A single replica has a volume. */}}
{{- define "model-gateway.keeps" -}}
{{- if and .Values.persistence.enabled (eq (int .Values.replicas) 1) -}}true{{- end -}}
{{- end -}}

{{/* The nodes share a store. */}}
{{- define "model-gateway.store" -}}
{{- if or .Values.store.url .Values.store.existingSecret (dig "store" "url" "" .Values.config) (hasKey .Values.env "GATEWAY_STORE_URL") -}}true{{- end -}}
{{- end -}}

{{/* Seconds that a pod has to end: before the signal, notice, drain, and ten for the rest. */}}
{{- define "model-gateway.grace" -}}
{{- if .Values.terminationGracePeriodSeconds -}}
{{- int .Values.terminationGracePeriodSeconds -}}
{{- else -}}
{{- $notice := dig "drain" "notice" (ternary 5 0 (eq (include "model-gateway.store" .) "true")) .Values.config -}}
{{- $drain := dig "upstream" "timeouts" "drain" 120 .Values.config -}}
{{- $before := dig "sleep" "seconds" 0 .Values.preStop -}}
{{- add (ceil $notice) (ceil $drain) (int $before) 10 -}}
{{- end -}}
{{- end -}}
