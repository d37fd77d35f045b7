{{- define "fovea.name" -}}
{{- .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "fovea.selector" -}}
app.kubernetes.io/name: fovea
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "fovea.labels" -}}
{{ include "fovea.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{/* cuda:0,cuda:1: the devices of a replica, none of which is replaced by a CPU. */}}
{{- define "fovea.devices" -}}
{{- $devices := list -}}
{{- range until (int .Values.gpus) }}{{ $devices = append $devices (printf "cuda:%d" .) }}{{ end -}}
{{- join "," $devices -}}
{{- end -}}
