"""Send what others may have to DVC's remote, or get what others sent: `make push`, `make pull`.

While a data set of one's own is not shared, `dvc push` sends nothing, since folders of DVC hold files of several data
sets. This sends the files of all other data sets, which `reports/shared.json` then names for those who pull.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
from collections.abc import Collection, Iterator
from pathlib import Path, PurePosixPath
from typing import Any

# The library of this working copy, wherever the environment's own copy lies.
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "lib"))

from privsvm.digests import sha256_of_file
from privsvm.errors import PrivSVMError
from privsvm.files import atomic_path, read_json, write_json
from privsvm.pipeline.own_files import dataset_of, has_own_data, is_pushed, shared_datasets
from privsvm.pipeline.params import read_params
from privsvm.pipeline.stage import run

SHARED = Path("reports/shared.json")
LOCK = Path("dvc.lock")
_MD5 = re.compile(r"[0-9a-f]{32}")


def kept_outputs(repo: Any) -> list[Any]:
    """List the outputs that DVC's cache keeps."""
    return [out for out in repo.index.outs if out.use_cache and out.hash_info]


def files_of(repo: Any) -> Iterator[tuple[PurePosixPath, Any]]:
    """Go through the files of all outputs: path and hash."""
    for out in kept_outputs(repo):
        path = PurePosixPath(Path(out.fs_path).relative_to(repo.root_dir).as_posix())
        if out.hash_info.isdir:
            yield from ((path.joinpath(*key), content) for key, _, content in out.get_obj())
        else:
            yield path, out.hash_info


def push(shared: Collection[str], remote: str | None) -> None:
    """Send the files of these data sets, name them in `SHARED`, and say what stays here."""
    from dvc.repo import Repo

    with Repo() as repo:
        found = dict(files_of(repo))
        sent = {path: content for path, content in found.items() if dataset_of(path) in shared}
        store = repo.cloud.get_remote_odb(remote, "push")
        # Not by DVC's memory of what the remote held, which may have been emptied.
        failed = len(repo.cloud.transfer(repo.cache.local, store, set(sent.values())).failed)
    if failed:
        raise PrivSVMError(f"dvc push: {failed} files could not be sent; run `make push` again")
    write_json(SHARED, {"lock": sha256_of_file(LOCK), "files": {str(path): sent[path].value for path in sorted(sent)}})
    held = sorted({dataset_of(path) or "several data sets" for path in found if path not in sent})
    print(f"{len(sent)} files are in the remote, of {', '.join(sorted(shared))}; commit {SHARED} and {LOCK}")
    print(f"{len(found) - len(sent)} files stay here, of {', '.join(held)}; `share: true` would share a data set")


def pull(remote: str | None) -> None:
    """Get the files that `SHARED` names, and say what is missing."""
    from dvc.repo import Repo
    from dvc_data.hashfile.hash_info import HashInfo

    named = read_json(SHARED)
    if not isinstance(named, dict) or not isinstance(named.get("files"), dict):
        raise PrivSVMError(f"{SHARED}: names no files; get it again (git checkout {SHARED})")
    if named.get("lock") != sha256_of_file(LOCK):
        raise PrivSVMError(f"{SHARED}: belongs to another {LOCK}; whoever sent the files should commit both")
    for name, digest in named["files"].items():
        path = PurePosixPath(name)
        if ".." in path.parts or dataset_of(path) is None or not _MD5.fullmatch(str(digest)):
            raise PrivSVMError(f"{SHARED}: {name!r} is no file of a data set with its hash; get the file again")
    with Repo() as repo:
        wanted = {HashInfo("md5", digest) for digest in named["files"].values()}
        repo.cloud.transfer(repo.cloud.get_remote_odb(remote, "pull"), repo.cache.local, wanted)
        lost = []
        for name, digest in named["files"].items():
            cached = Path(repo.cache.local.oid_to_path(digest))
            if cached.exists():
                Path(name).parent.mkdir(parents=True, exist_ok=True)
                with atomic_path(name) as part:
                    shutil.copyfile(cached, part)
            else:
                lost.append(name)
        outputs = kept_outputs(repo)
        whole = sum(out.meta.nfiles or 1 for out in outputs)
        parts = {out.def_path for out in outputs}
    if lost:
        raise PrivSVMError(f"the remote lacks {len(lost)} files, such as {lost[0]}; ask for `make push` once more")
    here = [PurePosixPath(name) for name in named["files"]]
    without = sorted(part for part in parts if not any(path.is_relative_to(part) for path in here))
    print(
        f"{len(here)} of {whole} files are here. The others were made from data that are not shared, also with these:"
    )
    print("\n".join(f"  {part}" for part in without))
    print("and the files of such data in folders that are here. `make run` makes what it can without them.")


def plain(command: str, remote: str | None) -> None:
    """Let DVC do it."""
    chosen = [] if remote is None else ["--remote", remote]
    sys.exit(subprocess.run([sys.executable, "-m", "dvc", command, *chosen], check=False).returncode)


def main(arguments: list[str] | None = None) -> None:
    """Send or get."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("direction", choices=["push", "pull"])
    parser.add_argument("--remote", help="of DVC; else its default")
    options = parser.parse_args(arguments)
    from dvc.exceptions import DvcException

    try:
        if options.direction == "pull":
            pull(options.remote) if SHARED.exists() else plain("pull", options.remote)
            return
        params = read_params()
        if subprocess.run([sys.executable, "-m", "dvc", "status", "--quiet"], check=False).returncode:
            raise PrivSVMError("params.yaml: the outputs are of other settings (see dvc status); run `make run` first")
        if has_own_data(params) or not is_pushed():
            push(shared_datasets(params), options.remote)
            return
        SHARED.unlink(missing_ok=True)
        plain("push", options.remote)
    except DvcException as error:
        reason = " ".join(str(error).split())
        raise PrivSVMError(f"dvc {options.direction}: {reason}; mend that and run it again") from None


if __name__ == "__main__":
    run(main)
