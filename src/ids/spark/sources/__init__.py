"""Where tables come in on Spark: files, Kafka, any DataFrame, as the in-process reader has them."""

from ids.spark.sources.canonical import canonical
from ids.spark.sources.kafka import MALFORMED, packages_for
from ids.spark.sources.origin import ORIGIN, beside, with_origin
from ids.spark.sources.reading import catalog_table, read
from ids.spark.sources.retyped import retyped

__all__ = [
    "MALFORMED",
    "ORIGIN",
    "beside",
    "canonical",
    "catalog_table",
    "packages_for",
    "read",
    "retyped",
    "with_origin",
]
