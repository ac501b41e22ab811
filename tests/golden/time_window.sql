select avg(latency) as mean, Count(*), shapley_delta(Sum(latency * 2), region = 'EU-West') AS d
from lake.bronze.`server events` -- dotted, and one part in backticks
where latency between 0 and 1e3 /* both ends /* count */ */
Window `my window` as (partition by region, `tier` order by event_time asc, id
  range between interval '10 minutes' preceding and current row slide interval 30 seconds)
Emit Final
