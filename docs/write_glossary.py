"""Write docs/glossary.md from the vocabulary of the report."""

from pathlib import Path

from privsvm_bench.reporting.glossary import glossary_page

if __name__ == "__main__":
    Path(__file__).with_name("glossary.md").write_text(glossary_page())
