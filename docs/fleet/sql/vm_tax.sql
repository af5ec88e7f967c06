-- How much of a service's energy does the JVM use for itself?
SELECT service, version, energy_uj, vm_tax_uj, gc_uj, jit_uj, vm_uj, class_loading_uj, vm_runtime_uj,
       interpreter_uj, vm_tax_uj * 1e2 / nullif(energy_uj, 0) AS vm_tax_percent
FROM (
  SELECT n.service AS service, n.version AS version,
         CAST(sum(j.energy_uj) AS BIGINT) AS energy_uj, CAST(sum(j.vm_tax_uj) AS BIGINT) AS vm_tax_uj,
         CAST(sum(j.gc_uj) AS BIGINT) AS gc_uj, CAST(sum(j.jit_uj) AS BIGINT) AS jit_uj,
         CAST(sum(j.vm_uj) AS BIGINT) AS vm_uj, CAST(sum(j.class_loading_uj) AS BIGINT) AS class_loading_uj,
         CAST(sum(j.vm_runtime_uj) AS BIGINT) AS vm_runtime_uj,
         CAST(sum(j.interpreter_uj) AS BIGINT) AS interpreter_uj
  FROM jvms AS j
  LEFT JOIN names AS n ON j.run_id = n.run_id AND j.pid = n.pid AND j.process_start = n.process_start
  GROUP BY n.service, n.version) AS sums
ORDER BY vm_tax_uj DESC, service, version
