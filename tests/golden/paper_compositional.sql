SELECT
    SHAPLEY_ATTRIBUTE(
        AVG(latency),
        region_eu AND tier_premium
    ) AS eu_premium_attr,
    SHAPLEY_ATTRIBUTE(
        AVG(latency),
        region_eu AND NOT tier_premium
    ) AS eu_basic_attr,
    SHAPLEY_ATTRIBUTE(
        AVG(latency),
        region_eu OR region_us
    ) AS eu_or_us_attr
FROM server_events
WINDOW w AS (
    ORDER BY event_time
    ROWS 10000 PRECEDING
)
EMIT CHANGES;
