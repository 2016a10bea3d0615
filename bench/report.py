"""The results for people."""

from bench.results import Results


def show(results: Results) -> None:
    for load, row in results.table().items():
        print(f"\n{load}")
        for system, cell in row.items():
            print(f"  {system:20} {cell}")


def write(results: Results) -> None: ...
