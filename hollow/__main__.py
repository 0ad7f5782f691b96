"""``python -m hollow``, or this file by its path: hand over to the command line and never show a traceback."""

import gc
import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))
_HOME = os.path.dirname(_HERE)
_MANY = 50_000
"""Objects after which a search for cycles among them pays. What is imported makes none that could be freed."""


def main() -> None:
    """Run the command line; an unforeseen failure is one sentence on standard error and exit code 4."""
    gc.set_threshold(_MANY)
    # By its path, and without site packages, Python knows neither our modules nor those of others.
    sys.path[:] = [_HOME, *(entry for entry in sys.path if entry not in {_HERE, _HOME})]
    try:
        from essentials import packages

        packages.defer()
        from hollow import orders

        plain = orders.plain(sys.argv[1:])
        if plain is not None:
            sys.exit(orders.begin(**plain))
        from hollow.cli import app

        app(prog_name="python -m hollow")
    except KeyboardInterrupt:
        sys.exit(130)
    except Exception as why:  # noqa: BLE001 - the outermost boundary: nobody is above to handle it
        print(f"hollow could not run: {type(why).__name__}: {why}.", file=sys.stderr)
        sys.exit(4)


if __name__ == "__main__":
    main()
