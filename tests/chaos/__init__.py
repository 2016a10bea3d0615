"""Chaos: a whole system under load, faults from a seed, and a check of every run afterwards.

    make chaos DURATION=120 SEED=7

`plan` derives what people and faults do from the seed. `site` is the system: two gateways, two
workers, Postgres and Redis, each a process. `people` ask, correct, cancel and watch; `harm` does
the faults. What they saw is `evidence`; `checker` and `bounds` judge it, `report` tells.
"""
