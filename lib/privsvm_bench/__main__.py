"""Run the commands of the benchmark: ``python -m privsvm_bench``."""

from privsvm_bench.command import main

if __name__ == "__main__":
    raise SystemExit(main())
