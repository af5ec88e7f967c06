{{/* Names and labels of the objects. */}}

{{- define "joular-bpf.name" -}}
{{- .Values.nameOverride | default .Chart.Name | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "joular-bpf.fullname" -}}
{{- $name := .Values.nameOverride | default .Chart.Name -}}
{{- $made := contains $name .Release.Name | ternary .Release.Name (printf "%s-%s" .Release.Name $name) -}}
{{- .Values.fullnameOverride | default $made | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "joular-bpf.serviceAccount" -}}
{{- $made := .Values.serviceAccount.create | ternary (include "joular-bpf.fullname" .) "default" -}}
{{- .Values.serviceAccount.name | default $made -}}
{{- end -}}

{{- define "joular-bpf.priorityClass" -}}
{{- $made := .Values.priorityClass.create | ternary (include "joular-bpf.fullname" .) "" -}}
{{- .Values.priorityClass.name | default $made -}}
{{- end -}}

{{- define "joular-bpf.secret" -}}
{{- .Values.metricsToken.existingSecret | default (include "joular-bpf.fullname" .) -}}
{{- end -}}

{{- define "joular-bpf.selector" -}}
app.kubernetes.io/name: {{ include "joular-bpf.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "joular-bpf.labels" -}}
{{ include "joular-bpf.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}
