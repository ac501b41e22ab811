;; SHOW PREDICATES;
REGISTER PREDICATE `night shift` AS (
    (HOUR(event_time) >= 22 OR HOUR(event_time) < 6)
    AND event_time >= TIMESTAMP '2026-01-01 00:00:00+01:00'
    AND NOT (day IS NULL) AND `window` <=> "it's" AND x NOT IN (-1, 2.5) AND -x % 2 <> -(-3)
) ON server_events;
DROP PREDICATE `night shift` ON `server_events`;
SELECT SUM(x) FROM t WINDOW w AS (ORDER BY ts ROWS 5 PRECEDING) EMIT FINAL;
SELECT SUM(x) FROM t WINDOW w AS (ORDER BY ts RANGE INTERVAL '1' HOUR PRECEDING SLIDE INTERVAL '15' MINUTE) EMIT CHANGES;
