"""Where tables come in on Spark: files, Kafka, any DataFrame, as the in-process reader has them."""

from ids.spark.sources.canonical import canonical
from ids.spark.sources.kafka import MALFORMED, packages_for
from ids.spark.sources.origin import ORIGIN, with_origin
from ids.spark.sources.reading import read

__all__ = ["MALFORMED", "ORIGIN", "canonical", "packages_for", "read", "with_origin"]
