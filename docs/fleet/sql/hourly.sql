-- Sums by hour, service, version, method and kind. Overloads are apart, so that total_uj counts no
-- branch twice, and so are labels: modelled energy is never added to measured energy.
SELECT m.hour_start AS hour_start, m.service AS service, m.version AS version,
       m.method AS method, m.signature AS signature, m.module AS module, m.kind AS kind,
       m.energy_label AS energy_label, max(m.ambiguous) AS ambiguous,
       CAST(count(DISTINCT m.host) AS BIGINT) AS hosts,
       CAST(sum(m.self_uj) AS BIGINT) AS self_uj, CAST(sum(m.total_uj) AS BIGINT) AS total_uj,
       CAST(sum(m.inferred_self_uj) AS BIGINT) AS inferred_self_uj,
       CAST(sum(m.inferred_total_uj) AS BIGINT) AS inferred_total_uj,
       CAST(sum(m.self_cpu_ns) AS BIGINT) AS self_cpu_ns, CAST(sum(m.total_cpu_ns) AS BIGINT) AS total_cpu_ns,
       CAST(sum(m.self_samples) AS BIGINT) AS self_samples, CAST(sum(m.total_samples) AS BIGINT) AS total_samples
FROM minutes AS m
GROUP BY m.hour_start, m.service, m.version, m.method, m.signature, m.module, m.kind, m.energy_label
