"""`python -m gpcert_check` is `gpcert-check`."""

import sys

from gpcert_check.cli import main

if __name__ == "__main__":
    sys.exit(main())
