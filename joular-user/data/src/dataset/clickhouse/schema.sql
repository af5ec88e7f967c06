CREATE DATABASE IF NOT EXISTS {db};

-- What arrives: a row is a run's bundle, and holds nothing once the views below have taken their parts.
CREATE TABLE IF NOT EXISTS {db}.bundles
(
    {bundle}
)
ENGINE = Null;

{changed bundle}

CREATE TABLE IF NOT EXISTS {db}.runs
(
    {columns of runs}
)
ENGINE = MergeTree
PARTITION BY toYYYYMM(started)
ORDER BY (run_id)
{delete by started after keep}SETTINGS non_replicated_deduplication_window = {blocks};

{more columns of runs}

CREATE TABLE IF NOT EXISTS {db}.windows
(
    {columns of windows}
)
ENGINE = MergeTree
PARTITION BY toDate(window_start)
ORDER BY (host, run_id, window_start)
{delete by window_start after keep}SETTINGS ttl_only_drop_parts = 1, non_replicated_deduplication_window = {blocks};

{more columns of windows}

CREATE TABLE IF NOT EXISTS {db}.processes
(
    {columns of processes}
)
ENGINE = MergeTree
PARTITION BY toDate(window_start)
ORDER BY (service, host, run_id, pid, window_start)
{delete by window_start after keep}SETTINGS ttl_only_drop_parts = 1, non_replicated_deduplication_window = {blocks};

{more columns of processes}

CREATE TABLE IF NOT EXISTS {db}.methods
(
    {columns of methods}
)
ENGINE = MergeTree
PARTITION BY toDate(window_start)
ORDER BY (service, toStartOfHour(window_start), method, signature, kind, host, run_id, pid)
{delete by window_start after keep}SETTINGS ttl_only_drop_parts = 1, non_replicated_deduplication_window = {blocks};

{more columns of methods}

-- Energy and time are what reports show: with what samples of several windows say.
CREATE TABLE IF NOT EXISTS {db}.methods_hourly
(
    `service` LowCardinality(String),
    `version` LowCardinality(String),
    `namespace` LowCardinality(String),
    `hour` DateTime('UTC') CODEC(Delta, ZSTD(1)),
    `method` LowCardinality(String),
    `signature` LowCardinality(String),
    `kind` LowCardinality(String),
    `module` LowCardinality(String),
    `energy_label` LowCardinality(String),
    `ambiguous` Bool,
    `self_uj` Int64 CODEC(T64, ZSTD(1)),
    `total_uj` Int64 CODEC(T64, ZSTD(1)),
    `self_cpu_ns` Int64 CODEC(T64, ZSTD(1)),
    `total_cpu_ns` Int64 CODEC(T64, ZSTD(1)),
    `self_samples` Int64 CODEC(T64, ZSTD(1)),
    `total_samples` Int64 CODEC(T64, ZSTD(1)),
    `self_squares_uj2` Int64 CODEC(ZSTD(1)),
    `total_squares_uj2` Int64 CODEC(ZSTD(1))
)
ENGINE = SummingMergeTree
PARTITION BY toYYYYMM(hour)
ORDER BY (service, version, namespace, hour, method, signature, kind, module, energy_label, ambiguous)
{delete by hour after keep hourly}SETTINGS non_replicated_deduplication_window = {blocks};

CREATE TABLE IF NOT EXISTS {db}.paths_hourly
(
    `service` LowCardinality(String),
    `version` LowCardinality(String),
    `namespace` LowCardinality(String),
    `hour` DateTime('UTC') CODEC(Delta, ZSTD(1)),
    `category` LowCardinality(String),
    `stack_id` Int64 CODEC(ZSTD(1)),
    `energy_label` LowCardinality(String),
    `ambiguous` Bool,
    `energy_uj` Int64 CODEC(T64, ZSTD(1)),
    `cpu_ns` Int64 CODEC(T64, ZSTD(1)),
    `samples` Int64 CODEC(T64, ZSTD(1)),
    `squares_uj2` Int64 CODEC(ZSTD(1))
)
ENGINE = SummingMergeTree
PARTITION BY toYYYYMM(hour)
ORDER BY (service, version, namespace, hour, category, stack_id, energy_label, ambiguous)
{delete by hour after keep hourly}SETTINGS non_replicated_deduplication_window = {blocks};

-- Hosts and runs that have the same call path share a row. Each run that has it writes it again.
CREATE TABLE IF NOT EXISTS {db}.stacks
(
    `stack_id` Int64 CODEC(ZSTD(1)),
    `branch_id` Int64 CODEC(ZSTD(1)),
    `path` Array(LowCardinality(String)),
    `kinds` Array(LowCardinality(String)),
    `unwinder` LowCardinality(String),
    `walk_end` LowCardinality(String),
    `unnamed` LowCardinality(String),
    `last_seen` DateTime('UTC') CODEC(Delta, ZSTD(1))
)
ENGINE = ReplacingMergeTree(last_seen)
ORDER BY (stack_id)
{delete by last_seen after keep hourly}SETTINGS non_replicated_deduplication_window = {blocks};

-- Batches of bundles that have arrived as a whole. They are kept for ever: one that is not known is sent again.
CREATE TABLE IF NOT EXISTS {db}.loads
(
    `batch` String,
    `hour` DateTime('UTC') CODEC(Delta, ZSTD(1)),
    `token` String,
    `bundles` UInt32,
    `names` UInt64,
    `measured_uj` Int64,
    `loaded_at` DateTime('UTC') DEFAULT now() CODEC(Delta, ZSTD(1))
)
ENGINE = ReplacingMergeTree(loaded_at)
ORDER BY (hour, batch)
SETTINGS non_replicated_deduplication_window = {blocks};
ALTER TABLE {db}.loads ADD COLUMN IF NOT EXISTS `names` UInt64 AFTER `bundles`;

{view load_runs to runs}
SELECT {values of runs}
FROM {db}.bundles
ARRAY JOIN runs AS r;

{view load_windows to windows}
SELECT {values of windows}
FROM {db}.bundles
ARRAY JOIN windows AS r;

{view load_processes to processes}
SELECT {values of processes}
FROM {db}.bundles
ARRAY JOIN processes AS r;

{view load_methods to methods}
SELECT {values of methods}
FROM
(
    SELECT runs, methods, {targets}
    FROM {db}.bundles
)
ARRAY JOIN methods AS r;

{view load_methods_hourly to methods_hourly}
SELECT
    service, version, namespace, toStartOfHour(toDateTime(window_start, 'UTC')) AS hour, method, signature, kind, module,
    energy_label, ambiguous,
    sum(self_uj + inferred_self_uj) AS self_uj,
    sum(total_uj + inferred_total_uj) AS total_uj,
    sum(self_cpu_ns) AS self_cpu_ns,
    sum(total_cpu_ns) AS total_cpu_ns,
    sum(self_samples) AS self_samples,
    sum(total_samples) AS total_samples,
    sum(self_squares_uj2) AS self_squares_uj2,
    sum(total_squares_uj2) AS total_squares_uj2
FROM {db}.methods
GROUP BY service, version, namespace, hour, method, signature, kind, module, energy_label, ambiguous;

{view load_paths_hourly to paths_hourly}
SELECT
    {identity of branches}, toStartOfHour(toDateTime(r.window_start, 'UTC')) AS hour, r.category AS category, r.stack_id AS stack_id,
    ifNull(r.energy_label, '') AS energy_label, r.ambiguous AS ambiguous,
    sum(r.energy_uj + r.inferred_uj) AS energy_uj,
    sum(r.cpu_ns + r.inferred_cpu_ns) AS cpu_ns,
    sum(r.samples) AS samples,
    sum(r.squares_uj2 + r.inferred_squares_uj2) AS squares_uj2
FROM
(
    SELECT branches, {targets}
    FROM {db}.bundles
)
ARRAY JOIN branches AS r
GROUP BY service, version, namespace, hour, category, stack_id, energy_label, ambiguous;

{view load_stacks to stacks}
SELECT
    r.stack_id AS stack_id, r.branch_id AS branch_id,
    arrayMap(f -> if(f.class IS NULL, f.method, concat(f.class, '.', f.method)), r.frames) AS path,
    arrayMap(f -> f.kind, r.frames) AS kinds,
    ifNull(r.unwinder, '') AS unwinder, r.walk_end AS walk_end, ifNull(r.unnamed, '') AS unnamed,
    toDateTime(r.window_start, 'UTC') AS last_seen
FROM {db}.bundles
ARRAY JOIN stacks AS r;

CREATE ROLE IF NOT EXISTS {db}_reader;
GRANT SELECT ON {db}.* TO {db}_reader;
CREATE ROLE IF NOT EXISTS {db}_loader;
GRANT INSERT ON {db}.bundles TO {db}_loader;
GRANT SELECT, INSERT ON {db}.loads TO {db}_loader;
GRANT SELECT ON {db}.* TO {db}_loader;

-- Last: what carries this comment has all of the above.
ALTER TABLE {db}.bundles MODIFY COMMENT '{mark}';
