"""`python -m gpcert` is the command `gpcert`."""

from gpcert.cli.app import main

if __name__ == "__main__":
    main()
