# After a plain `snakemake`: tell DVC that all outputs are current, so that `dvc repro` has nothing to do.
# All versioned files are its inputs, so a partial or failed run is never recorded.
# DVC works inside a Git repository only: without one the results stand, and `onsuccess` says what is missing. In another
# working folder dvc.yaml is not ours.
HAS_GIT = any(
    (folder / ".git").exists() for folder in (Path.cwd(), *Path.cwd().parents)
)
RECORD = STAGES == "stages/" and not IN_DVC and Path(".dvc").is_dir() and HAS_GIT
# The marker holds the hash of dvc.lock; where that file is lost or exchanged, it is recorded again. DVC's own run writes
# its dvc.lock after the marker.
RECORDED = Path("logs/recorded")
if os.environ.get("DVC_STAGE") == "report":
    write_text(RECORDED, "by dvc repro\n")
elif RECORD and RECORDED.is_file():
    lock_file = Path("dvc.lock")
    text = lock_file.read_text() if lock_file.is_file() else ""
    known = [sha256_of_file(lock_file), "by dvc repro"] if text else []
    if "\n<<<<<<< " in f"\n{text}":
        known = []
        logger.warning(
            "note: dvc.lock: has the markers of a merge; this run writes it anew from the outputs that are here"
        )
    if RECORDED.read_text().strip() not in known:
        RECORDED.unlink()
VERSIONED = [
    *RAW,
    *AUDITS,
    *RESULTS,
    *NUMBERS,
    *(
        name.removesuffix(".json") + ending
        for name in (*PREPARED, *CONDENSED, *MODELS)
        for ending in (".npz", ".json")
    ),
]


# `make sync` touches these files, which DVC versions. A clone lacks the pages, so the report is made again.
rule versioned:
    input:
        [name for name in VERSIONED if name not in NUMBERS],
    localrule: True


rule record:
    input:
        [name for name in VERSIONED if name not in NUMBERS],
        # DVC links them anew after its own run. The job that makes them makes the page, too.
        ancient(NUMBERS),
        "reports/index.html",
        "reports/tracking.json",
    output:
        "logs/recorded",
    log:
        "logs/record.log",
    localrule: True
    conda:
        "../environment.yml"
    threads: 1
    resources:
        mem_mb=500,
    params:
        files=argument_file("record", *VERSIONED),
    shell:
        f"exec python {STAGES}record.py"
        " {params.files:q} --output {output:q} > {log:q} 2>&1"
