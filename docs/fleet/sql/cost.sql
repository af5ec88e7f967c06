-- What do services cost and emit? {price} is of a kilowatt-hour, {grams} what one emits, and {pue} the
-- building's factor (docs/carbon.md). A kilowatt-hour is 3.6e12 µJ.
SELECT service, version, energy_uj,
       energy_uj / 3.6e12 * {pue} AS kilowatt_hours,
       energy_uj / 3.6e12 * {pue} * {grams} AS grams_co2e,
       energy_uj / 3.6e12 * {pue} * {price} AS cost
FROM (
  SELECT m.service AS service, m.version AS version,
         CAST(sum(m.self_uj + m.inferred_self_uj) AS BIGINT) AS energy_uj
  FROM minutes AS m GROUP BY m.service, m.version) AS sums
ORDER BY energy_uj DESC, service, version
