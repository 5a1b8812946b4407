"""`dragoman` in a process of its own that tells every block of a bulk job as soon as it is done.

With BULK_IS_HELD it goes on from its first block only when a signal comes.
"""

import os
import signal
import sys

from model.offline.bulk.blocks import Receipt
from service.cli.main import main
from service.cli.translate import bulk_progress


class _Held(bulk_progress.BulkProgress):
    def add(self, receipt: Receipt) -> None:
        super().add(receipt)
        signal.pause()


if __name__ == "__main__":
    bulk_progress.SECONDS_BETWEEN_LINES = -1.0
    if "BULK_IS_HELD" in os.environ:
        bulk_progress.BulkProgress = _Held  # type: ignore[misc]  # what this process is for
    sys.exit(main(sys.argv[1:]))
