-- Which methods cost more in version {after} of {service} than in {before}? {work_before} and
-- {work_after} are what the versions did in the hours that are read, such as requests.
SELECT method, before_uj, after_uj, before_cpu_ns, after_cpu_ns,
       before_uj * 1e3 / nullif(before_cpu_ns, 0) AS before_joules_per_cpu_second,
       after_uj * 1e3 / nullif(after_cpu_ns, 0) AS after_joules_per_cpu_second,
       before_uj * 1e0 / {work_before} AS before_uj_per_work, after_uj * 1e0 / {work_after} AS after_uj_per_work,
       after_uj * 1e0 / {work_after} - before_uj * 1e0 / {work_before} AS more_uj_per_work
FROM (
  SELECT m.method AS method,
         CAST(sum(CASE WHEN m.version = {before} THEN m.self_uj + m.inferred_self_uj ELSE 0 END) AS BIGINT) AS before_uj,
         CAST(sum(CASE WHEN m.version = {after} THEN m.self_uj + m.inferred_self_uj ELSE 0 END) AS BIGINT) AS after_uj,
         CAST(sum(CASE WHEN m.version = {before} THEN m.self_cpu_ns ELSE 0 END) AS BIGINT) AS before_cpu_ns,
         CAST(sum(CASE WHEN m.version = {after} THEN m.self_cpu_ns ELSE 0 END) AS BIGINT) AS after_cpu_ns
  FROM minutes AS m
  WHERE m.service = {service} AND m.version IN ({before}, {after})
  GROUP BY m.method) AS sums
ORDER BY more_uj_per_work DESC, method
LIMIT 20
