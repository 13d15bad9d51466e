"""Starts a service of the venv with two changes that cost nothing in truth and save most of the time.

    launch.py ironic|dbsync|bmc ARGUMENTS…

Run by the venv's own interpreter: its console scripts name a folder that was renamed (see ../lib.sh).
"""
import functools
import hashlib
import sys


def ironic():
    # Ironic 39 keys its Redfish sessions by a hash of the BMC password, 600,000 rounds of PBKDF2 at
    # every access to a BMC: 15 s of CPU for one enrollment, 2 s when equal inputs are hashed once.
    hashlib.pbkdf2_hmac = functools.cache(hashlib.pbkdf2_hmac)
    from ironic.command.singleprocess import main
    return main()


def dbsync():
    from ironic.command.dbsync import main
    return main()


def bmc():
    # The fake driver lets a power change take effect 1 to 11 s later, at random. One second is
    # enough to be seen as a change that is still under way.
    from sushy_tools.emulator.resources.systems import fakedriver

    class NoChance:
        randint = staticmethod(lambda low, _high: low)

    fakedriver.random = NoChance
    from sushy_tools.emulator.main import main
    return main()


if __name__ == "__main__":
    service = {f.__name__: f for f in (ironic, dbsync, bmc)}[sys.argv.pop(1)]
    sys.exit(service())
