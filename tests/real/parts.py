"""Runs the parts of a rig's own proof, and says of each how it ended and how long it took."""
import subprocess
import time


def prove(parts, *given):
    """Each part gets what is given. Returns the exit status: 0 where all of them hold."""
    failed = 0
    for part in parts:
        began = time.monotonic()
        try:
            part(*given)
            print(f"ok      {part.__name__}  {time.monotonic() - began:.1f} s")
        except (AssertionError, RuntimeError, KeyError, OSError, subprocess.SubprocessError) as error:
            failed += 1
            print(f"FAILED  {part.__name__}: {error!r}")
    return 1 if failed else 0
