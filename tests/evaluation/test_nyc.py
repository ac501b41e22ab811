from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from evaluation.workloads import ingredients, recipe
from evaluation.workloads.manifest import EVENTS, Manifest, differences, prepare, standing
from ids.demo import events
from ids.errors import DataError, IdsError, SourceError
from ids.spark import translated

ZONES = (
    'LocationID,Borough,Zone\n1,EWR,"A"\n4,Manhattan,B\n7,Queens,C\n264,Unknown,N/A\n265,N/A,D\n'
)
NOON = datetime(2024, 1, 1, 12)


def trips(pickup: str, rows: list[tuple]) -> pa.Table:
    """TLC trips: minutes after noon, fare, zone, vendor, payment."""
    minutes, fares, zones, vendors, payments = zip(*rows, strict=True)
    instants = [None if m is None else NOON.replace(minute=m) for m in minutes]
    return pa.table(
        {
            "VendorID": pa.array(vendors, pa.int32()),
            pickup: pa.array(instants, pa.timestamp("us")),
            "PULocationID": pa.array(zones, pa.int32()),
            "payment_type": pa.array(payments, pa.float64()),
            "fare_amount": pa.array(fares, pa.float64()),
        }
    )


@pytest.fixture
def taxi(tmp_path: Path) -> Path:
    folder = tmp_path / "taxi"
    folder.mkdir()
    (folder / "taxi_zone_lookup.csv").write_text(ZONES)
    yellow = [
        (30, 10.0, 4, 1, 1.0),
        (10, 500.0, 7, 2, None),
        (10, 0.0, 7, 2, 1.0),
        (11, -3.0, 7, 2, 1.0),
        (12, 500.01, 7, 2, 1.0),
        (13, 5.0, 264, 2, 1.0),
        (14, 5.0, 265, 2, 1.0),
        (15, 5.0, None, 2, 1.0),
        (None, 5.0, 4, 2, 1.0),
        (16, None, 4, 2, 1.0),
        (17, float("nan"), 4, 2, 1.0),
    ]
    green = [(30, 20.0, 1, 6, 2.0), (10, 7.0, 4, None, 2.0), (10, 6.0, 4, 1, 2.0)]
    pq.write_table(trips("tpep_pickup_datetime", yellow), folder / "yellow.parquet")
    pq.write_table(trips("lpep_pickup_datetime", green), folder / "green.parquet")
    return folder


def made(spark: SparkSession, paths: list[Path], out: Path) -> Manifest:
    files = ingredients(paths, None)
    return prepare(spark, recipe("nyc", files=files), out, files)


def test_yellow_and_green_trips_become_one_stream(
    spark: SparkSession, taxi: Path, tmp_path: Path
) -> None:
    paths = [taxi / "yellow.parquet", taxi / "green.parquet"]
    manifest = made(spark, paths, tmp_path / "out")
    rows = pq.read_table(tmp_path / "out" / EVENTS).to_pylist()
    assert [
        (r["event_time"].minute, r["fare_amount"], r["borough"], r["vendor"], r["payment"])
        for r in rows
    ] == [
        (10, 7.0, "Manhattan", None, 2),
        (10, 6.0, "Manhattan", 1, 2),
        (10, 500.0, "Queens", 2, None),
        (30, 20.0, "EWR", 6, 2),
        (30, 10.0, "Manhattan", 1, 1),
    ]
    assert rows[0]["event_time"].isoformat() == "2024-01-01T12:10:00+00:00"
    names = ["green.parquet", "yellow.parquet", "taxi_zone_lookup.csv"]
    assert [line.split()[1] for line in manifest.recipe["sources"]] == names
    again = recipe("nyc", files=ingredients(paths[::-1], None))
    assert standing(again, tmp_path / "out") == manifest  # the same files in any order


def test_what_holds_no_trips_is_refused(spark: SparkSession, taxi: Path, tmp_path: Path) -> None:
    table = pq.read_table(taxi / "green.parquet")
    for name, fact in (("fare_amount", "fare_amount"), ("lpep_pickup_datetime", "tpep_pickup")):
        pq.write_table(table.drop_columns([name]), taxi / "odd.parquet")
        with pytest.raises(SourceError, match=f"has no column {fact}"):
            made(spark, [taxi / "odd.parquet"], tmp_path / "out")
    (taxi / "odd.parquet").write_bytes(b"not Parquet")
    with pytest.raises(IdsError, match=r"odd\.parquet"), translated():
        made(spark, [taxi / "odd.parquet"], tmp_path / "out")
    pq.write_table(table.slice(0, 0), taxi / "odd.parquet")
    with pytest.raises(DataError, match="no trip has a plausible fare"):
        made(spark, [taxi / "odd.parquet"], tmp_path / "out")
    (taxi / "taxi_zone_lookup.csv").write_text("a,b\n1,2\n")
    with pytest.raises(SourceError, match="no zone table"):
        made(spark, [taxi / "green.parquet"], tmp_path / "out")
    assert not (tmp_path / "out").exists()


def by_arrow(files: list[Path], zones: Path) -> pa.Table:
    """The slow, obvious version: one table, filtered, sorted."""
    names = ["lpep_pickup_datetime", "fare_amount", "PULocationID", "VendorID", "payment_type"]
    types = [pa.timestamp("us"), pa.float64(), pa.int64(), pa.int64(), pa.int64()]
    schema = pa.schema(list(zip(names, types, strict=True)))
    table = pa.concat_tables([pq.read_table(f, columns=names).cast(schema) for f in files])
    convert = pa.csv.ConvertOptions(null_values=[], strings_can_be_null=False)
    look_up = pa.csv.read_csv(zones, convert_options=convert)
    place = pc.index_in(table["PULocationID"], look_up["LocationID"].combine_chunks())
    table = table.append_column("borough", look_up["Borough"].take(place))
    fare = table["fare_amount"]
    plausible = pc.and_(pc.greater(fare, 0.0), pc.less_equal(fare, 500.0))
    known = pc.invert(pc.is_in(table["borough"], pa.array(["Unknown", "N/A"])))
    table = table.filter(pc.and_(plausible, known))
    order = pc.sort_indices(table, [("lpep_pickup_datetime", "ascending")])
    return table.take(order)


def test_real_green_months_are_what_arrow_makes_of_them(
    spark: SparkSession, shared_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    months = [
        shared_data / "taxi_green" / f"green_tripdata_{month}.parquet"
        for month in ("2023-12", "2024-01")
    ]
    manifest = made(spark, months, tmp_path / "out")
    assert differences(tmp_path / "out") == []
    assert len(manifest.files) > 1
    ours = pq.read_table(tmp_path / "out" / EVENTS)
    theirs = by_arrow(months, shared_data / "taxi_zone_lookup.csv")
    pairs = {"fare_amount": "fare_amount", "borough": "borough", "vendor": "VendorID"}
    for our, their in {**pairs, "payment": "payment_type"}.items():
        assert ours[our].combine_chunks().equals(theirs[their].combine_chunks()), our
    instants = theirs["lpep_pickup_datetime"].cast(pa.timestamp("us", "UTC"))
    assert ours["event_time"].combine_chunks().equals(instants.combine_chunks())
    monkeypatch.setitem(events._SETTINGS, "spark.sql.shuffle.partitions", "7")
    monkeypatch.setitem(events._SETTINGS, "spark.sql.files.maxPartitionBytes", "100000")
    assert made(spark, months, tmp_path / "again").sha256 == manifest.sha256
