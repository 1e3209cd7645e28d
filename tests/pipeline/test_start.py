"""A job that the server starts is what a new Python would be, and nothing of either stays behind."""

import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from privsvm.pipeline import start
from privsvm.warm_up import MODULES

CALL = ["python", "-IS", start.__file__]
# What a shell, not the caller, changes.
IGNORED = {"_", "PYTEST_CURRENT_TEST", start.SOCKET}

# Stands for Snakemake: starts the server, says where it is, and lives until its input ends.
OWNER = f"""
import os, sys
from privsvm.pipeline.start import start_server
start_server()
print(os.environ[{start.SOCKET!r}], flush=True)
sys.stdin.read()
"""

STATE = """
import json, os, sys
json.dump({
    "arguments": sys.argv, "folder": os.getcwd(), "environment": dict(os.environ), "input": sys.stdin.read(),
    "name": __name__, "file": __file__, "path": sys.path, "python": sys.executable, "prefix": sys.prefix,
}, sys.stdout)
print("a message", file=sys.stderr)
"""

# Tells its number and waits.
WAIT = """
import os, time
try:
    print(os.getpid(), flush=True)
    time.sleep(600)
except KeyboardInterrupt:
    print("interrupted", flush=True)
    raise SystemExit(3)
"""


@pytest.fixture(autouse=True)
def python_of_the_tests(monkeypatch):
    """`python` is the one that runs the tests, also where its folder is not on the path."""
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")


@pytest.fixture
def folder(tmp_path):
    (tmp_path / ".snakemake").mkdir()
    return tmp_path


@pytest.fixture
def owner(folder, monkeypatch):
    monkeypatch.delenv(start.SOCKET, raising=False)
    # Where the tests run in the background of a shell, all of this would ignore Ctrl-C.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    pipe = subprocess.PIPE
    process = subprocess.Popen([sys.executable, "-c", OWNER], cwd=folder, stdin=pipe, stdout=pipe, text=True)
    monkeypatch.setenv(start.SOCKET, process.stdout.readline().strip())
    monkeypatch.chdir(folder)
    yield process
    process.communicate()
    signal.signal(signal.SIGINT, before)


def write(folder, text, name="job.py"):
    (folder / name).write_text(text)
    return name


def begin(*command, **options):
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)


def call(*arguments, **options):
    return subprocess.run([*CALL, *arguments], capture_output=True, text=True, check=False, **options)


def alive(pid):
    """Whether a process runs; one that has ended and was not asked for its code does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def ends(pid):
    """Wait for a process that is about to end; the test's own limit of time ends a wait in vain."""
    while alive(pid):
        time.sleep(0.01)
    return True


def children(pid):
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def test_a_job_is_what_a_new_python_would_be(folder, owner, monkeypatch):
    monkeypatch.setenv("A_WORD", 'with spaces, "quotes", = and\nline breaks; $(touch pwned)')
    monkeypatch.setenv("OF_BYTES", os.fsdecode(b"\xff\xfe"))
    (folder / "stages").mkdir()
    script = write(folder, STATE, "stages/state.py")
    arguments = [script, "--option", "", "a b", "ü", "@x"]
    plain = subprocess.run(["python", *arguments], input="text", capture_output=True, text=True, check=True)
    called = call(*arguments, input="text")
    expected, found = json.loads(plain.stdout), json.loads(called.stdout)
    for state in (expected, found):
        state["environment"] = {key: value for key, value in state["environment"].items() if key not in IGNORED}
    assert found == {**expected, "file": found["file"]}
    assert Path(found["file"]).resolve() == Path(expected["file"]).resolve()
    assert (called.returncode, called.stderr) == (0, "a message\n")


@pytest.mark.parametrize(("code", "status"), [
    ("pass", 0),
    ("raise SystemExit(7)", 7),
    ("raise SystemExit('the reason')", 1),
    ("raise SystemExit(-1)", 255),
    ("raise ValueError('the reason')", 1),
    ("import os; os.kill(os.getpid(), 15)", -signal.SIGTERM),
    ("import os; os.kill(os.getpid(), 9)", -signal.SIGKILL),
])  # fmt: skip
def test_a_caller_ends_as_its_job(folder, owner, code, status):
    called = call(write(folder, code))
    assert called.returncode == status
    assert ("the reason" in called.stderr) == ("the reason" in code)


AT_THE_END = """
import atexit, threading, time
atexit.register(lambda: print("at exit"))
def work():
    time.sleep(0.2)
    print("thread", end=", ")
threading.Thread(target=work).start()
print("main", end=", ")
"""


def test_a_job_ends_its_threads_and_calls_what_is_left_to_do(folder, owner):
    called = call(write(folder, AT_THE_END))
    assert (called.returncode, called.stdout, called.stderr) == (0, "main, thread, at exit\n", "")


@pytest.mark.parametrize("victim", ["caller", "server", "owner"])
def test_a_job_dies_with_its_caller_the_server_and_snakemake(folder, owner, victim):
    (server,) = children(owner.pid)
    caller = begin(*CALL, write(folder, WAIT))
    job = int(caller.stdout.readline())
    assert children(server) == [job] != [caller.pid]
    os.kill({"caller": caller.pid, "server": server, "owner": owner.pid}[victim], signal.SIGKILL)
    assert ends(job)
    caller.wait()
    assert caller.returncode == -signal.SIGKILL
    if victim == "caller":
        # The others go on.
        assert call(write(folder, "print('next')")).stdout == "next\n"
    else:
        assert ends(server)
        assert call(write(folder, "print('plain')")).stdout == "plain\n"


def test_signals_reach_the_job(folder, owner):
    caller = begin(*CALL, write(folder, WAIT))
    caller.stdout.readline()
    caller.send_signal(signal.SIGINT)
    assert caller.communicate()[0] == "interrupted\n"
    assert caller.returncode == 3


def test_nothing_stays_behind(folder, owner):
    (server,) = children(owner.pid)
    address = folder / os.environ[start.SOCKET]
    assert stat.S_IMODE(address.stat().st_mode) & 0o077 == 0
    call(write(folder, "pass"))
    owner.communicate()
    assert not alive(server)
    assert not address.exists()


def test_without_a_server_a_job_starts_plainly(folder, owner, monkeypatch):
    script = write(folder, "import os; print(os.getpid(), os.environ.get('OMP_NUM_THREADS'))")

    def pid_is_the_callers(**environment):
        caller = begin(*CALL, script, env={**os.environ, **environment})
        pid, threads = caller.communicate()[0].split()
        assert threads == environment.get("OMP_NUM_THREADS", os.environ.get("OMP_NUM_THREADS"))
        return int(pid) == caller.pid

    assert not pid_is_the_callers()
    # What is read when packages are imported.
    assert pid_is_the_callers(OMP_NUM_THREADS="3")
    assert pid_is_the_callers(PYTHONHASHSEED="5")
    assert pid_is_the_callers(**{start.SOCKET: ".snakemake/nobody"})
    assert not pid_is_the_callers(ANYTHING="else")
    monkeypatch.delenv(start.SOCKET)
    assert pid_is_the_callers()


def test_an_edited_module_is_imported_anew(folder, owner):
    script = write(folder, "import helper; print(helper.VALUE)")
    for value in ("first", "a second one"):
        write(folder, f"VALUE = {value!r}", "helper.py")
        assert call(script).stdout == f"{value}\n"


def test_an_edited_library_starts_plainly(folder, monkeypatch):
    """A value of a module that the server imports, before and after an edit that leaves time and size as they were."""
    library = folder / "lib"
    shutil.copytree(Path(start.__file__).parents[1], library / "privsvm", ignore=shutil.ignore_patterns("__pycache__"))
    module = library / "privsvm/pipeline/evaluation.py"
    text = module.read_text()
    monkeypatch.setenv("PYTHONPATH", str(library))
    script = write(
        folder,
        "import os, sys; ready = 'privsvm.pipeline.evaluation' in sys.modules\n"
        "import privsvm.pipeline.evaluation as it; print(ready, os.path.samefile(it.__file__, sys.argv[1]), it.VALUE)",
    )
    command = ["python", "-IS", library / "privsvm/pipeline/start.py", script, module]
    module.write_text(f"{text}\nVALUE = 1\n")
    times = os.stat(module).st_atime_ns, os.stat(module).st_mtime_ns
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", OWNER], cwd=folder, stdin=pipe, stdout=pipe, text=True) as process:
        monkeypatch.setenv(start.SOCKET, process.stdout.readline().strip())
        monkeypatch.chdir(folder)

        def said():
            return subprocess.run(command, capture_output=True, text=True, check=True).stdout

        assert said() == said() == "True True 1\n"
        # Bytecode is renewed by time and size.
        shutil.rmtree(module.parent / "__pycache__", ignore_errors=True)
        module.write_text(f"{text}\nVALUE = 2\n")
        os.utime(module, ns=times)
        assert said() == "False True 2\n"
        process.communicate()


def test_a_library_that_cannot_be_imported_stops_no_server(folder, monkeypatch):
    library = folder / "lib/privsvm/pipeline"
    library.mkdir(parents=True)
    shutil.copy(start.__file__, library)
    for name in ("__init__.py", "../__init__.py"):
        write(library, "", name)
    write(library, "this is no Python", "evaluation.py")
    monkeypatch.setenv("PYTHONPATH", str(folder / "lib"))
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", OWNER], cwd=folder, stdin=pipe, stdout=pipe, text=True) as process:
        monkeypatch.setenv(start.SOCKET, process.stdout.readline().strip())
        monkeypatch.chdir(folder)
        (server,) = children(process.pid)
        called = call(write(folder, "import os; print(os.getppid())"))
        assert called.stdout == f"{server}\n"
        process.communicate()


def test_no_jit_function_is_imported_beforehand(folder, owner):
    """A job has those compiled that it imports: `privsvm.warm_up` asks which they are."""
    code = "import sys; print(*sys.modules)"
    known = set(start._PACKAGES) | {"evaluate.py"}
    for name in known:
        found = set(call(write(folder, code, name)).stdout.split())
        assert "privsvm.pipeline.evaluation" in found
        assert not found & {f"privsvm.{module}" for module in MODULES}


def test_copies_draw_different_numbers(folder, owner):
    script = write(folder, "import numpy, random; print(numpy.random.random(), random.random())")
    first, second = (call(script).stdout.split() for _ in range(2))
    assert not set(first) & set(second)


def test_every_script_with_its_packages_is_a_copy(folder, owner):
    """None of the packages starts a thread: a process with several is not copied."""
    (server,) = children(owner.pid)
    code = "import os, sys; print(os.getppid(), all(name in sys.modules for name in sys.argv[1].split()))"
    for name, packages in start._PACKAGES.items():
        assert call(write(folder, code, name), " ".join(packages)).stdout.split() == [str(server), "True"], name


def test_compiled_code_is_loaded_without_setting_numba_up(folder, owner):
    code = "from numba.core.registry import cpu_target; print('_toplevel_target_context' in vars(cpu_target))"
    assert call(write(folder, code, "train.py")).stdout.strip() == "True"
    plain = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert plain.stdout.strip() == "False"
