"""``python -m privsvm``: the same as the command ``privsvm``."""

from privsvm.command import main

if __name__ == "__main__":
    raise SystemExit(main())
