-- Rows of methods with the service that they belong to, each in the hour in which it starts.
SELECT date_trunc('hour', m.window_start) AS hour_start, n.service AS service, n.version AS version,
       m.method AS method, m.signature AS signature, m.module AS module, m.kind AS kind,
       m.window_start AS window_start, m.window_ns AS window_ns, m.host AS host, m.run_id AS run_id,
       m.pid AS pid, m.process_start AS process_start,
       m.self_uj AS self_uj, m.total_uj AS total_uj,
       m.inferred_self_uj AS inferred_self_uj, m.inferred_total_uj AS inferred_total_uj,
       m.self_cpu_ns AS self_cpu_ns, m.total_cpu_ns AS total_cpu_ns,
       m.self_samples AS self_samples, m.total_samples AS total_samples,
       m.energy_label AS energy_label, m.ambiguous AS ambiguous
FROM methods AS m
LEFT JOIN names AS n ON m.run_id = n.run_id AND m.pid = n.pid AND m.process_start = n.process_start
