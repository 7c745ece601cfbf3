"""Nothing of it is used by the kernels that dry_run.py tries."""
