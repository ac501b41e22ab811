"""The same answer by other means, each in its best honest form, all with one interface.

``run(table, window, regions)`` slides a count window of ``window`` rows by one row over ``table``
(event_time, region dictionary<string>, latency float64) and gives ``n`` and, for the k-th region,
``value_k``, ``share_k`` and ``lift_k`` of its AVG attribution, one row each.
"""
