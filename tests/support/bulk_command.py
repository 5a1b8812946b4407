"""`dragoman` in a process of its own that tells every block of a bulk job as soon as it is done."""

import sys

from service.cli.main import main
from service.cli.translate import bulk_progress

if __name__ == "__main__":
    bulk_progress.SECONDS_BETWEEN_LINES = -1.0
    sys.exit(main(sys.argv[1:]))
