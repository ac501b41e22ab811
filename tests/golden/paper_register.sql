-- Step 1: Register predicates of interest
REGISTER PREDICATE region_eu
    AS (region = 'EU-West')
    ON server_events;

REGISTER PREDICATE region_us
    AS (region = 'US-East')
    ON server_events;

-- Step 2: Continuous attribution query
SELECT
    SHAPLEY_ATTRIBUTE(
        AVG(latency), region_eu
        WITH (SHARE, LIFT)
    ) AS eu_attribution,
    SHAPLEY_ATTRIBUTE(
        AVG(latency), region_us
        WITH (SHARE, LIFT)
    ) AS us_attribution
FROM server_events
WINDOW w AS (
    ORDER BY event_time
    ROWS 10000 PRECEDING
)
EMIT CHANGES;
