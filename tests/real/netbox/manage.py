"""NetBox's command line. The venv's own script names a folder that was renamed (see ../lib.sh)."""
import sys

if __name__ == "__main__":
    from netbox.cli import main
    sys.exit(main())
