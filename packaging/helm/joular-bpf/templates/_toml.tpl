{{/*
A value of the configuration as TOML. A string of JSON is also one of TOML. Templates get the numbers of YAML as floats:
1234567 would be 1.234567e+06, and toToml would write 0 as 0.0.
*/}}
{{- define "joular-bpf.toml" -}}
{{- if kindIs "string" . -}}
{{- mustToRawJson . -}}
{{- else if kindIs "slice" . -}}
{{- $parts := list -}}
{{- range . }}{{ $parts = append $parts (include "joular-bpf.toml" .) }}{{ end -}}
[{{ join ", " $parts }}]
{{- else if kindIs "map" . -}}
{{- $parts := list -}}
{{- range $key, $value := . -}}
{{- $parts = append $parts (printf "%s = %s" $key (include "joular-bpf.toml" $value)) -}}
{{- end -}}
{ {{ join ", " $parts }} }
{{- else if kindIs "float64" . -}}
{{- eq . (floor .) | ternary (int64 .) . -}}
{{- else -}}
{{- . -}}
{{- end -}}
{{- end -}}
