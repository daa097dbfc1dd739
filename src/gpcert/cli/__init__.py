"""The command line `gpcert`."""
