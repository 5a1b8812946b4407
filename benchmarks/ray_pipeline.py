"""`python -m benchmarks.ray_pipeline SOURCE OUTPUT`: lines through a pipeline of Ray Data.

What `benchmarks.bulk` times of a pipeline: text is read, cut into blocks as a bulk job has them,
translated by actors of one thread each, and written as JSON Lines. Needs `ray[data]`.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from model.offline.bulk.ray_data import ColumnTranslator, translation_method

ROOT = Path(__file__).resolve().parents[1]
NUM_CALLS = 4
"""Blocks on their way in an actor, each a call."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Translate the lines of a file."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("source", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("--ray-address", required=True)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--block-rows", type=int, default=250)
    options = parser.parse_args(arguments)
    import ray  # noqa: PLC0415  # large, and no part of the checks
    import ray.data  # noqa: PLC0415

    data: Any = ray.data
    ray.init(address=options.ray_address, log_to_driver=False, logging_level="ERROR")
    data.DataContext.get_current().enable_progress_bars = False
    with options.source.open("rb") as lines:
        num_blocks = -(-sum(1 for _ in lines) // options.block_rows)
    method = translation_method(ROOT / "checkpoints" / "en-de-small", target="de")
    data.read_text(str(options.source.absolute()), override_num_blocks=num_blocks).map_batches(
        ColumnTranslator,
        fn_constructor_kwargs={"method": method, "columns": ["text"]},
        batch_format="pyarrow",
        batch_size=options.block_rows,
        compute=data.ActorPoolStrategy(
            size=options.workers, max_concurrent_calls_per_actor=NUM_CALLS
        ),
        num_cpus=1,
    ).write_json(str(options.output.absolute()))
    ray.shutdown()
    return 0


if __name__ == "__main__":
    sys.exit(main())
