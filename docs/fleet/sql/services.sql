-- Which services use the most? share is of all targets.
SELECT service, version, energy_uj, cpu_ns,
       energy_uj * 1e2 / sum(energy_uj) OVER () AS share_percent
FROM (
  SELECT m.service AS service, m.version AS version,
         CAST(sum(m.self_uj + m.inferred_self_uj) AS BIGINT) AS energy_uj,
         CAST(sum(m.self_cpu_ns) AS BIGINT) AS cpu_ns
  FROM minutes AS m GROUP BY m.service, m.version) AS sums
ORDER BY energy_uj DESC, service, version
