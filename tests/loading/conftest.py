from loading_fixtures import make, no_workers_left, two_cpus_are_enough

__all__ = ["make", "no_workers_left", "two_cpus_are_enough"]
