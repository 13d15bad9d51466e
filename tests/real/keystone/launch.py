"""Starts a part of Keystone by the venv's interpreter: its console scripts name a folder that was renamed (see ../lib.sh).

    launch.py manage ARGUMENTS…       keystone-manage
    launch.py serve                   the API; its settings are in the environment

Keystone reads the arguments of its process as its own, so that the server gets none.
"""
import sys


def manage():
    from keystone.cmd.manage import main
    return main()


def serve():
    del sys.argv[1:]
    from gunicorn.app.wsgiapp import run
    return run()


if __name__ == "__main__":
    part = {f.__name__: f for f in (manage, serve)}[sys.argv.pop(1)]
    sys.exit(part())
