"""The paper's workloads, made by Spark jobs: the same bytes for a seed at any parallelism.

Spark is imported by the modules that make a workload, not by those that read one.
"""
