"""The command line: `gpcert demo`, `gpcert certify`, `gpcert range`, `gpcert radius`."""
