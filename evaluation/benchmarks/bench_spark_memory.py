"""50 million rows through ``ids run`` on two cores: how much memory the driver's Python takes"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter

from evaluation.benchmarks.bench_spark_scaling import script
from evaluation.benchmarks.record import describe, write
from evaluation.benchmarks.spark_data import requests, session

__all__ = ["main"]

ROWS = 50_000_000
_PROGRAM = """
import resource, sys
from ids.cli.app import invoke
code = invoke(sys.argv[1:])
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr)
sys.exit(code)
"""


def main() -> None:
    """Measure, keep, show."""
    spark = session()
    place = requests(spark, ROWS).inputFiles()[0].removeprefix("file://").rsplit("/", 1)[0]
    spark.stop()
    folder = Path(tempfile.mkdtemp(prefix="ids-bench-"))
    query = folder / "query.sql"
    query.write_text(script(10))
    begun = perf_counter()
    arguments = ["run", query, "--table", f"events={place}", "--output", folder / "out.parquet"]
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, *map(str, arguments), "--master", "local[2]"],
        capture_output=True,
        text=True,
        check=True,
    )
    seconds = perf_counter() - begun
    peak = int(done.stderr.split()[-1]) * 1024
    print(f"{ROWS:,} rows in {seconds:.1f} s; Python's peak {peak / 2**20:,.0f} MiB")
    write({"name": "spark_memory", "rows": ROWS, "s": seconds, "peak_bytes": peak, **describe()})
