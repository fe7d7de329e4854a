"""Cases from the field about the end of an interpreter, and forks."""

from __future__ import annotations

import signal

import pytest

from batchmill.runner import Result, Runner
from tests.runner.helpers import User
from tests.support.invariants import broken
from tests.support.script import PATIENCE, hears, script

RUNNING = """
    runner = Runner(store, block, resolve_caller=resolve).start()
    job = runner.submit(User("u"), ["u", "v"]).job_id
    assert begun.wait(10)
    say(job)
"""


INTERRUPTED = """
    import warnings
    # Python's own, of a driver's connection that the interrupt met half made
    warnings.simplefilter("ignore", ResourceWarning)
    runner.wait(job)
"""


def ended(process) -> str:
    """What it wrote to stderr; it has to end by itself, soon."""
    return process.communicate(timeout=PATIENCE)[1]


def finishes(database, store, job: str) -> None:
    """Nothing stays running, and another runner finishes the job at once."""
    assert database.query("SELECT DISTINCT status FROM batch_target") == [("pending",)]
    assert broken(database) == []
    with Runner(store, lambda *_: Result("x"), resolve_caller=lambda n, _: User(n)) as runner:
        assert runner.wait(job, PATIENCE).status == "done"


def test_case_s14_the_main_thread_ends_with_jobs_live(database, store):
    """Exit code 0, nothing on stderr, and the rows are recoverable."""
    with script(database.url, RUNNING) as process:
        job = process.stdout.readline().strip()
        assert ended(process) == ""
    assert process.returncode == 0
    finishes(database, store, job)


def test_case_s14_ctrl_c_with_jobs_live(database, store):
    """Only the application's own KeyboardInterrupt is told, and the rows are recoverable."""
    with script(database.url, RUNNING + INTERRUPTED) as process:
        job = process.stdout.readline().strip()
        process.send_signal(signal.SIGINT)
        told = ended(process)
    assert told.count("Traceback") == 1
    assert told.rstrip().endswith("KeyboardInterrupt")
    assert "shutdown" not in told
    finishes(database, store, job)


FORKING = """
    import warnings; warnings.simplefilter("ignore")  # Python's own about forks and threads
    forked = threading.Event()  # no thread may be inside SQLite at the moment of a fork
    def fetch(context, caller, target):
        os.write(1, f"{os.getpid()} {target.url}\\n".encode())
        begun.set()
        forked.wait(20)
        return Result("x")
    config = RunnerConfig(targets_per_job=40)
    runner = Runner(store, fetch, config).start()
    job = runner.submit(User("u"), [str(number) for number in range(20)]).job_id
    assert begun.wait(10)
    mine = {id(each) for each in [engine.connect().connection.driver_connection]}
    children = []
    for number in range(4):
        if not (child := os.fork()):
            code = 1
            try:
                with engine.connect() as connection:
                    assert id(connection.connection.driver_connection) not in mine
                for _ in range(20):
                    assert store.get_job(job) is not None
                store.touch_job(job, now=time.time())
                code = 0
            finally:
                os._exit(code)
        children.append(child)
    forked.set()
    codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    assert codes == [0] * 4, codes
    assert runner.wait(job, 20).status == "done"
    runner.close()
    say("parent", os.getpid())
"""


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_case_s3_a_fork_shares_no_connection_and_runs_nothing_twice(database):
    """Four children use the engine at once; the parent's runner goes on in the parent alone."""
    with script(database.url, FORKING) as process:
        out, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, err) == (0, "")
    lines = [line.split() for line in out.splitlines()]
    parent = lines.pop()[1]
    assert lines == [[parent, str(number)] for number in range(20)]
    assert broken(database) == []


def test_the_scripts_of_these_tests_can_fail(database):
    """A script that says something else, or raises, is noticed."""
    with script(database.url, "say('hello')\nraise SystemExit(3)") as process:
        hears(process, "hello")
        assert process.wait(PATIENCE) == 3
