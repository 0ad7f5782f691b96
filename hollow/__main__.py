"""``python -m hollow``: hand over to the command line and never show a traceback."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line; an unforeseen failure is one sentence on standard error and exit code 4."""
    try:
        from hollow import orders

        plain = orders.plain(sys.argv[1:])
        if plain is not None:
            sys.exit(orders.begin(**plain))
        from hollow.cli import app

        app()
    except KeyboardInterrupt:
        sys.exit(130)
    except Exception as why:  # noqa: BLE001 - the outermost boundary: nobody is above to handle it
        print(f"hollow could not run: {type(why).__name__}: {why}.", file=sys.stderr)
        sys.exit(4)


if __name__ == "__main__":
    main()
