"""``python -m privsvm``: the same as the command ``privsvm``."""

from privsvm_bench.command import main

if __name__ == "__main__":
    raise SystemExit(main())
