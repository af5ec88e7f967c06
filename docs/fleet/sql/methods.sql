-- Which methods use the most by themselves, in all services and on all hosts?
SELECT m.method AS method, CAST(sum(m.self_uj + m.inferred_self_uj) AS BIGINT) AS energy_uj,
       CAST(sum(m.self_cpu_ns) AS BIGINT) AS cpu_ns,
       CAST(count(DISTINCT m.service) AS BIGINT) AS services, CAST(count(DISTINCT m.host) AS BIGINT) AS hosts
FROM minutes AS m
GROUP BY m.method
ORDER BY energy_uj DESC, method
LIMIT 20
