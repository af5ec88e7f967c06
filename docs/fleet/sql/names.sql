-- What each process is part of. A process has a new row whenever that changes: the latest counts.
SELECT run_id, pid, process_start, service, version, container, pod
FROM (
  SELECT *, row_number() OVER (
    PARTITION BY run_id, pid, process_start ORDER BY window_start DESC NULLS LAST) AS age
  FROM processes) AS by_age
WHERE age = 1
