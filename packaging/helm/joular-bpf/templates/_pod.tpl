{{/* What several objects have to know of the pods. */}}

{{/* Capabilities; docs/operating.md says what each is for. */}}
{{- define "joular-bpf.capabilities" -}}
{{- $needed := list "BPF" "PERFMON" "SYS_PTRACE" "CHECKPOINT_RESTORE" "DAC_READ_SEARCH" "SYSLOG" -}}
["{{ concat $needed .Values.extraCapabilities | join "\", \"" }}"]
{{- end -}}

{{/* The port of metrics; empty if there are none. */}}
{{- define "joular-bpf.port" -}}
{{- with .Values.config.metrics -}}
{{- $port := regexFind "[0-9]+$" . | int -}}
{{- if or (lt $port 1) (gt $port 65535) -}}
{{- fail (printf "config.metrics: %q does not end with a port from 1 to 65535, such as 0.0.0.0:9897" .) -}}
{{- end -}}
{{- if or (hasPrefix "127." .) (hasPrefix "[::1]" .) -}}
{{- fail (printf "config.metrics: probes and Prometheus do not reach %q: write 0.0.0.0:%d" . $port) -}}
{{- end -}}
{{- $port -}}
{{- end -}}
{{- end -}}

{{/* Whether the token of metrics is in a secret; a user's own file may hold it. */}}
{{- define "joular-bpf.hasToken" -}}
{{- if eq (index .Values.config "metrics-token" | toString) "/etc/joular-bpf/secret/metrics-token" }}true{{ end -}}
{{- end -}}

{{/* Whether metrics have TLS. */}}
{{- define "joular-bpf.hasTls" -}}
{{- if index .Values.config "metrics-cert" }}true{{ end -}}
{{- end -}}

{{/* Seconds until the kubelet kills a pod, which have to be enough for ship-at-end. */}}
{{- define "joular-bpf.gracePeriod" -}}
{{- $seconds := .Values.terminationGracePeriodSeconds | int64 -}}
{{- with index .Values.config "ship-at-end" -}}
{{- $unit := get (dict "ms" 1 "s" 1000 "m" 60000 "h" 3600000) (regexFind "[a-z]+$" .) -}}
{{- if ge (mul (regexFind "^[0-9]+" . | int64) $unit) (mul $seconds 1000) -}}
{{- fail (printf
  "config.ship-at-end: %s is not less than terminationGracePeriodSeconds, %d: raise that to 15 s more than ship-at-end"
  . $seconds) -}}
{{- end -}}
{{- end -}}
{{- $seconds -}}
{{- end -}}
