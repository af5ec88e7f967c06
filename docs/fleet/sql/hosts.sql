-- Which hosts use the most, and how much of it goes to targets?
SELECT w.host AS host, CAST(sum(w.measured_uj) AS BIGINT) AS measured_uj,
       CAST(sum(w.attributed_uj) AS BIGINT) AS attributed_uj,
       CAST(sum(w.static_uj) AS BIGINT) AS static_uj,
       CAST(sum(w.unattributed_uj) AS BIGINT) AS unattributed_uj
FROM windows AS w
GROUP BY w.host
ORDER BY measured_uj DESC, host
