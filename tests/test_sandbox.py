"""The sandbox: what is forbidden fails in it, what is allowed works, at every level; and each attack is a real one."""

from __future__ import annotations

import json
import os
import signal
import socket
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from agents import bubblewrap, checks, landlock, procs, sandbox
from agents.cell import Cell, Limits
from agents.errors import AgentError, HostError
from essentials import records
from tests.support import cells, fakes, world
from tests.support.cells import act, scene, started
from tests.support.needs import lacking, needs_bwrap, why_no_bwrap
from tests.support.wards import hear, output

LEVELS = ("full", "partial", "none")


@pytest.fixture
def stage(tmp_path: Path):
    with scene(tmp_path / "scene") as made:
        yield made


@pytest.fixture
def listener():
    """Sockets of the machine, outside of every sandbox: TCP and UDP on loopback, and an abstract one."""
    name = f"agent-box-test-{os.getpid()}-{time.monotonic_ns()}"
    with (
        socket.create_server(("127.0.0.1", 0)) as tcp,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp,
        socket.socket(socket.AF_UNIX) as abstract,
    ):
        udp.bind(("127.0.0.1", 0))
        udp.setblocking(False)
        abstract.bind("\0" + name)
        abstract.listen()
        yield {"tcp": tcp.getsockname()[1], "udp": udp.getsockname()[1], "abstract": name, "heard": udp}


def require(level: str) -> None:
    """Skip, loudly, what this machine has not."""
    if level == "full" and (why := why_no_bwrap()):
        lacking(why)
    if level == "partial" and landlock.abi() < landlock.SCOPE_SINCE:
        # A matter of the kernel, which nobody can install.
        pytest.skip(f"Landlock here is version {landlock.abi()}")


# What an agent may not do, and what it takes for partial (which is honest about the rest: docs of `describe`).
ATTACKS = {
    "write outside": "Path(here['secret']).write_text('x')",
    "truncate outside": "os.truncate(here['secret'], 0)",
    "rename outside": "os.rename(here['secret'], here['secret'] + '2'); os.rename(here['secret'] + '2', here['secret'])",
    "link from outside": "os.link(here['secret'], 'hard')",
    "write through a link": "os.symlink(here['secret'], 'soft'); open('soft', 'a').write('x')",
    "create outside": "Path(here['secret'] + '.new').mkdir()",
    "read a secret": "Path(here['secret']).read_text()",
    "read the ledger": "Path(here['repo'], '.agents/INDEX.jsonl').read_text()",
    "read the checkout": "Path(here['repo'], 'src/code.py').read_text()",
    "read another airlock": "Path(here['repo'], 'agent_box/note').read_text()",
    "write .git/config": "open(here['repo'] + '/.git/config', 'a').write('x')",
    "plant a hook": "Path(here['repo'], '.git/hooks/post-checkout').write_text('x')",
    "read a stranger's environment": "assert b's3cret' in Path(f'/proc/{here[\"victim\"]}/environ').read_bytes()",
    "read a stranger's memory": "open(f'/proc/{here[\"victim\"]}/mem', 'rb').close()",
    "signal a stranger": "os.kill(here['victim'], 0)",
    "attach to a stranger": "must(libc.ptrace(16, here['victim'], 0, 0)); os.waitpid(here['victim'], 0x40000000); must(libc.ptrace(17, here['victim'], 0, 0))",
    "reach a server": "socket.create_connection(('127.0.0.1', here['tcp']), 5).close()",
    "reach an abstract socket": "socket.socket(socket.AF_UNIX).connect(chr(0) + here['abstract'])",
    "make a user namespace": "must(libc.unshare(0x10000000))",
    "make one by clone": "child = call(220 if arm else 56, 0x10000000 | 17, 0, 0, 0, 0); child or os._exit(0)",
    "use io_uring": "call(425, 1, 0)",
    "use the keyring": "call(219 if arm else 250, 0, -3, 0)",
    "use userfaultfd": "call(282 if arm else 323, 1)",
    "type into a terminal": "own = os.openpty()[1]; os.setsid(); fcntl.ioctl(own, 0x540E, 0); fcntl.ioctl(own, 0x5412, b'x')",
    "lift the limit of core files": "resource.setrlimit(resource.RLIMIT_CORE, (1, 1))",
}  # fmt: skip
PARTIAL_CANNOT = {
    "change a mode outside": "os.chmod(here['secret'], 0o600)",
    "look at a file outside": "os.stat(here['secret'])",
    "write the .git of the airlock": "open('.git', 'a').write('x')",
    "rename the .git of the airlock": "os.rename('.git', 'git'); os.rename('git', '.git')",
    "connect to a socket outside": "socket.socket(socket.AF_UNIX).connect(here['socket'])",
    "list the machine's processes": "assert str(here['victim']) in os.listdir('/proc')",
}
ROOTS_OWN = {"open the machine's settings": "os.close(os.open('/proc/sys/kernel/core_pattern', os.O_WRONLY))"}


@pytest.mark.parametrize("level", LEVELS)
def test_forty_ways_out(level: str, stage, listener, tmp_path: Path) -> None:
    """T147: attacks of the table fail under full, but for the named ones under partial; without a sandbox they work."""
    require(level)
    outside = str(stage.top / "other" / "s")
    attacks = {**ATTACKS, **PARTIAL_CANNOT, **(ROOTS_OWN if os.geteuid() == 0 else {})}
    facts = {
        "secret": str(stage.top / "other" / "secret"), "repo": str(stage.repo), "victim": stage.victim,
        "socket": outside, **{name: value for name, value in listener.items() if name != "heard"},
    }  # fmt: skip
    with socket.socket(socket.AF_UNIX) as served:
        served.bind(outside)
        served.listen()
        found = act(attacks, stage.cell(level), tmp_path, **facts)
    gained = {name for name, what in found.items() if what == "done"}
    if level == "none":
        # What is not the machine's own habit to forbid: each attack is one.
        habits = {"make a user namespace", "make one by clone", "use io_uring", "use the keyring", "use userfaultfd",
                  "attach to a stranger", "read a stranger's memory", "type into a terminal"}  # fmt: skip
        assert gained - habits >= attacks.keys() - habits - {"lift the limit of core files"}, found
    else:
        assert gained == ({*PARTIAL_CANNOT} if level == "partial" else set()), found
        assert (stage.top / "other" / "secret").read_text() == "s3cret\n"
        assert sorted(os.listdir(stage.top / "other")) == ["s", "secret"]  # noqa: PTH208 - names


@pytest.mark.parametrize("level", ["full", "partial"])
def test_what_an_agent_needs_works(level: str, stage, tmp_path: Path) -> None:
    """The wall has to be one that nobody wants to take down."""
    require(level)
    acts = {
        "write": "Path('new').write_text('x'); os.rename('new', 'sub/new'); os.symlink('new', 'sub/link'); os.unlink('code.py')",
        "run": "assert subprocess.run(['sh', '-c', 'echo $0 | cat'], capture_output=True, check=True).stdout == b'sh\\n'",
        "hand over": "Path(here['outbox'], 'report.md').write_text('x')",
        "read history": "Path(here['repo'], '.git/HEAD').read_text()",
        "devices": "open('/dev/null', 'w').write('x'); open('/dev/urandom', 'rb').read(3)",
        "threads": "thread = threading.Thread(target=time.sleep, args=(0,)); thread.start(); thread.join()",
        "own socket": "pair = socket.socketpair(); pair[0].send(b'x')",
        "own terminal": "os.openpty()",
        "names": "__import__('pwd').getpwuid(0); __import__('ssl').create_default_context()",
        "signal its own": "os.kill(os.getpid(), 0)",
    }
    if level == "full":
        acts["scratch"] = "Path('/tmp/x').write_text('x'); Path('/dev/shm/x').write_text('x')"
        acts["own loopback"] = (
            "server = socket.create_server(('127.0.0.1', 0)); socket.create_connection(server.getsockname(), 5).close()"
        )
    found = act(acts, stage.cell(level), tmp_path, outbox=str(stage.outbox), repo=str(stage.repo))
    assert found == dict.fromkeys(acts, "done")
    assert (stage.airlock / "sub" / "new").read_text() == "x"
    assert (stage.outbox / "report.md").exists()
    assert not Path("/tmp/x").exists()


@pytest.mark.parametrize("level", ["full", "partial"])
def test_no_datagram_gets_out(level: str, stage, listener, tmp_path: Path) -> None:
    """S10: Landlock knows no UDP, so under partial the filter has to stop it."""
    require(level)
    send = "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', here['udp']))"
    act({"send": send}, stage.cell(level), tmp_path, udp=listener["udp"])
    with pytest.raises(BlockingIOError):
        listener["heard"].recv(10)
    act({"send": send}, stage.cell(level, network=True), tmp_path, udp=listener["udp"])
    assert listener["heard"].recv(10) == b"x"


@pytest.mark.parametrize("level", ["full", "partial"])
def test_with_the_network_only_the_network_is_there(level: str, stage, listener, tmp_path: Path) -> None:
    """S11: an engine that must reach its server reaches no abstract socket of the desktop by that."""
    require(level)
    if landlock.abi() < landlock.SCOPE_SINCE:
        pytest.skip("this kernel's Landlock knows no abstract sockets")
    acts = {name: ATTACKS[name] for name in ("reach a server", "reach an abstract socket")}
    found = act(acts, stage.cell(level, network=True), tmp_path, tcp=listener["tcp"], abstract=listener["abstract"])
    assert found["reach a server"] == "done"
    assert found["reach an abstract socket"].startswith("PermissionError")


@pytest.mark.parametrize("level", ["full", "partial"])
def test_a_reader_sees_the_checkout_without_box_and_secrets(level: str, stage, tmp_path: Path) -> None:
    """S04: what is hidden cannot be read; a folder inside of it that is asked for can, and be written if that is asked."""
    require(level)
    hide = (stage.repo / ".agents", stage.repo / "agent_box", stage.repo / ".env", stage.repo / "not there")
    cell = Cell(level=level, cwd=stage.repo, read=(stage.repo,), write=(stage.outbox,), hide=hide, network=False)
    acts = {
        "code": "Path('src/code.py').read_text()",
        "history": "Path('.git/HEAD').read_text()",
        "outbox": "Path(here['outbox'], 'x').write_text('x')",
        "write": "Path('src/code.py').write_text('x')",
        "create": "Path('src/new').mkdir()",
        "ledger": "Path('.agents/INDEX.jsonl').read_text()",
        "airlock": "Path('agent_box/note').read_text()",
        ".env": "assert 'content' in Path('.env').read_text()",
        "into the hidden": "Path('.agents/new').write_text('x')",
    }
    found = act(acts, cell, tmp_path, outbox=str(stage.outbox))
    assert {name for name, what in found.items() if what == "done"} == {"code", "history", "outbox"}, found
    assert (stage.outbox / "x").read_text() == "x"


class TestFull:
    """What only namespaces can do."""

    pytestmark = pytest.mark.usefixtures("bwrap")

    def test_another_content_is_seen_in_the_place_of_a_file(self, stage, tmp_path: Path) -> None:
        """S04: the repository's configuration, without its passwords."""
        shown = tmp_path / "shown"
        shown.write_text("harmless\n")
        cell = stage.cell("full", instead={stage.repo / ".git" / "config": shown})
        act_ = {"see": "assert Path(here['repo'], '.git/config').read_text() == 'harmless\\n'"}
        assert act(act_, cell, tmp_path, repo=str(stage.repo)) == {"see": "done"}

    def test_a_hidden_file_in_a_writable_folder_is_empty_and_stays(self, stage, tmp_path: Path) -> None:
        (stage.airlock / ".env").write_text("KEY=s3cret")
        acts = {
            "see": "assert Path('.env').read_text() == ''",
            "write": "Path('.env').write_text('x')",
            "drop": "os.unlink('.env')",
        }
        found = act(acts, stage.cell("full", hide=(stage.airlock / ".env",)), tmp_path)
        assert [name for name, what in found.items() if what == "done"] == ["see"]
        assert (stage.airlock / ".env").read_text() == "KEY=s3cret"

    def test_links_on_the_way_are_links_inside_too(self, stage, tmp_path: Path) -> None:
        (stage.top / "way").symlink_to("other")
        (stage.top / "chain").symlink_to(stage.top / "way" / "secret")
        acts = {
            "see": "assert Path(here['chain']).read_text() == 's3cret\\n'",
            "link": "assert os.path.islink(here['chain'])",
        }
        cell = stage.cell("full", read=(stage.top / "chain",))
        assert act(acts, cell, tmp_path, chain=str(stage.top / "chain")) == {"see": "done", "link": "done"}

    def test_the_temporary_folders_and_the_rest_of_memory_end(self, stage, tmp_path: Path) -> None:
        """T05: what is written there is the machine's memory."""
        limits = Limits(scratch=1024**2, file_size=4 * 1024**2)
        acts = {
            f"fill {name}": f"open('{name}/big', 'wb').write(bytes(2 * 1024**2))"
            for name in ("/tmp", "/var/tmp", "/dev/shm", "/", "/dev", "/etc", str(stage.top))
        }
        acts["a large file"] = (
            "signal.signal(signal.SIGXFSZ, signal.SIG_IGN); open('big', 'wb').write(bytes(5 * 1024**2))"
        )
        found = act(acts, stage.cell("full", limits=limits), tmp_path)
        assert [name for name, what in found.items() if what == "done"] == []

    def test_a_fork_storm_ends_at_the_limit(self, stage, tmp_path: Path) -> None:
        """P06: more processes than the limit cannot be."""
        if os.geteuid() == 0:
            pytest.skip("the kernel holds root to no number of processes")
        storm = "[os.fork() or (time.sleep(60), os._exit(0)) for _ in range(100)]"
        found = act({"storm": storm}, stage.cell("full", limits=Limits(processes=40)), tmp_path)
        assert found["storm"].startswith("BlockingIOError")

    def test_nothing_of_it_stands_in_the_list_of_processes(self, stage, tmp_path: Path) -> None:
        """S08: neither environment nor paths."""
        with started(
            ["/bin/sh", "-c", "echo up; sleep 60"], stage.cell("full"), tmp_path, TOKEN="s3cret-value"
        ) as child:
            output(child, b"up")
            lines = Path(f"/proc/{child.pid}/cmdline").read_bytes()
        assert b"s3cret" not in lines
        assert str(stage.airlock).encode() not in lines

    def test_inside_are_three_open_files_and_the_given_environment(self, stage, tmp_path: Path) -> None:
        """P30: no descriptor of the supervisor, the guard or the sandbox itself."""
        acts = {
            "files": "fds = {int(n) for n in os.listdir('/proc/self/fd')} - {read, write}; assert fds <= {0, 1, 2, read + 2}, fds",
            "environment": "extra = set(os.environ) - {'PATH', 'LC_ALL', 'PWD', 'ONLY'}; assert not extra and os.environ['ONLY'] == 'this', extra",
        }
        script = tmp_path / "actor.py"
        script.write_text(cells.ACTOR)
        argv = [sys.executable, "-IS", str(script), json.dumps({"acts": acts})]
        with started(argv, stage.cell("full"), tmp_path, ONLY="this") as child:
            found = json.loads(output(child, b"END\n").partition(b"END")[0])
        assert found == {"files": "done", "environment": "done"}

    @pytest.mark.parametrize("end", ["T", "K", "close", "guard"])
    def test_all_inside_ends_with_the_supervision(self, end: str, stage, tmp_path: Path, mark: str) -> None:
        """P03: an evil tree in a sandbox is gone after every end, also that of the guard by SIGKILL."""
        source = fakes.EVIL_TREE + "print('ready', flush=True)\ntime.sleep(300)"
        argv = fakes.program(stage.airlock / "evil.py", source, mark)
        with started(argv, stage.cell("full"), tmp_path, grace=0.3) as child:
            output(child, b"ready")
            assert len(world.tree_of(mark)) >= fakes.EVIL_COUNT
            assert procs.is_alive(child.pid, child.start)
            if end == "guard":
                child.process.kill()
                world.eventually(lambda: not world.tree_of(mark))
            elif end != "close":
                child.end(politely=end == "T")
                hear(child, "reaped")
        world.eventually(lambda: not world.tree_of(mark))

    def test_a_polite_end_reaches_the_agent_and_not_the_wall(self, stage, tmp_path: Path) -> None:
        """C23: the sandbox's own process is not told, for its end would kill everybody at once."""
        polite = "def bye(*_): time.sleep(0.3); os.write(1, b'bye'); os._exit(7)\nsignal.signal(15, bye); print('ready', flush=True); time.sleep(300)"
        with started(fakes.program(stage.airlock / "p.py", polite), stage.cell("full"), tmp_path, grace=30) as child:
            output(child, b"ready")
            child.end(politely=True)
            assert b"bye" in output(child, b"bye")
            assert hear(child, "exit") == {"exit": 7}

    @pytest.mark.parametrize(
        ("source", "code"), [("sys.exit(3)", 3), ("os.kill(os.getpid(), 9)", 137), ("os.kill(os.getpid(), 15)", 143)]
    )
    def test_the_end_is_told_as_a_shell_tells_it(self, source: str, code: int, stage, tmp_path: Path) -> None:
        """T137: 137 and 143 mean inside what -9 and -15 mean outside."""
        with started(fakes.program(stage.airlock / "a.py", source), stage.cell("full"), tmp_path) as child:
            assert hear(child, "exit") == {"exit": code}

    def test_a_spool_is_written_from_inside(self, stage, tmp_path: Path) -> None:
        """The file itself is out of reach inside; what is open is the agent's stdout."""
        (tmp_path / "stdin").write_text("the task")
        spool = tmp_path / "spool"
        argv = ["/bin/sh", "-c", f"cat; echo to the pipe >&2; cat {spool}"]
        child = procs.spawn(
            argv,
            cwd=stage.airlock,
            env=cells.ENV,
            stdin=tmp_path / "stdin",
            spool=spool,
            grace=1,
            cell=stage.cell("full"),
        )
        try:
            child.release()
            assert hear(child, "exit") == {"exit": 1}
            assert spool.read_text() == "the task"
            assert os.read(child.stderr, 12) == b"to the pipe\n"
        finally:
            child.close()

    def test_work_inside_is_seen_from_outside(self, stage, tmp_path: Path) -> None:
        with started([sys.executable, "-IS", "-c", "while True: pass"], stage.cell("full"), tmp_path) as child:
            world.eventually(lambda: procs.busy_ticks(child.pid, child.start) > 5)

    def test_what_a_dead_supervisor_left_is_found_by_its_mark(self, stage, tmp_path: Path, mark: str) -> None:
        """T140: the sandbox carries the mark outside, so that all of it can be ended."""
        argv = [sys.executable, "-IS", "-c", "print('up', flush=True); import time; time.sleep(300)", mark]
        with started(argv, stage.cell("full"), tmp_path, **{procs.RUN_MARK: mark}) as child:
            output(child, b"up")
            child.process.send_signal(signal.SIGSTOP)
            assert procs.end_remains(mark, [], wait=0) >= 1
            world.eventually(lambda: not procs.is_alive(child.pid, child.start))

    def test_a_sandbox_in_the_sandbox(self, stage, tmp_path: Path) -> None:
        """Hollow's children have one of their own, and cannot reach the settings of the machine through it."""
        inner = "bwrap --unshare-user --unshare-pid --unshare-net --ro-bind /usr /usr --symlink usr/bin /bin --symlink usr/lib /lib --symlink usr/lib64 /lib64 --ro-bind /proc /proc --dev /dev --tmpfs /tmp --die-with-parent -- sh -c 'echo inner'"
        again = "must(libc.unshare(0x10000000 | 0x20000)); must(libc.umount2(b'/proc/sys', 2) if os.path.ismount('/proc/sys') else -1)"
        acts = {
            "inner": f"assert subprocess.run({inner!r}, shell=True, capture_output=True, check=True).stdout == b'inner\\n'",
            "uncover": again,
        }
        found = act(acts, stage.cell("full", nested=True), tmp_path)
        assert found["inner"] == "done"
        assert found["uncover"] != "done"
        assert act({"inner": acts["inner"]}, stage.cell("full"), tmp_path)["inner"].startswith("CalledProcessError")

    def test_a_long_list_of_secrets_fits(self, stage, tmp_path: Path) -> None:
        """No argument list of the kernel's is long enough for a large repository."""
        folders = [stage.repo / "src" / (f"{number:03d}" + "x" * 200) for number in range(120)]
        for folder in folders:
            folder.mkdir()
            (folder / ".env").write_text("s3cret")
        cell = Cell(level="full", cwd=stage.repo, read=(stage.repo,), hide=tuple(each / ".env" for each in folders))
        count = "assert all(each.read_text() == '' for each in Path('src').glob('*/.env')); assert len(list(Path('src').glob('*/.env'))) == 120"
        assert act({"all": count}, cell, tmp_path) == {"all": "done"}


class TestSwapped:
    """What an agent of an earlier attempt has put into its airlock before the next one is walled in."""

    def test_a_git_file_that_is_no_file_any_more(self, stage) -> None:
        """G15: a link in the place of `.git` would bind what it leads to."""
        (stage.airlock / ".git").unlink()
        (stage.airlock / ".git").symlink_to(stage.repo / ".git")
        with pytest.raises(AgentError, match="has become a link"):
            bubblewrap.mounts(stage.cell("full"))
        (stage.airlock / ".git").unlink()
        (stage.airlock / ".git").mkdir()
        with pytest.raises(AgentError, match="no longer the file"):
            bubblewrap.mounts(stage.cell("full"))
        (stage.airlock / ".git").rmdir()
        assert stage.airlock / ".git" not in bubblewrap.mounts(stage.cell("full"))

    def test_a_writable_folder_in_a_writable_folder(self, stage) -> None:
        (stage.airlock / "sub").rmdir()
        (stage.airlock / "sub").symlink_to(stage.top / "other")
        with pytest.raises(AgentError, match="has become a link"):
            bubblewrap.mounts(stage.cell("full", write=(stage.airlock, stage.airlock / "sub")))

    def test_a_program_in_the_airlock_opens_nothing_by_being_a_link(self, stage) -> None:
        (stage.airlock / "tool").symlink_to(stage.top / "other" / "secret")
        (stage.top / "other" / "secret").chmod(0o755)
        made = sandbox._with_program("./tool", stage.cell("full"), {})
        assert made.read == stage.cell("full").read


class TestMounts:
    def test_parents_come_before_children_and_nothing_twice(self, stage) -> None:
        cell = Cell(
            level="full", cwd=stage.repo, read=(stage.repo, stage.repo / "src", Path("/dev/null"), Path("/nowhere")),
            write=(stage.outbox,), hide=(stage.repo / ".agents", stage.top / "other"),
        )  # fmt: skip
        made = bubblewrap.mounts(cell)
        ours = {
            path.relative_to(stage.top).as_posix(): mount.kind
            for path, mount in made.items()
            if path.is_relative_to(stage.top)
        }
        assert ours == {"repo": "ro", "repo/.agents": "hidden", "repo/.agents/runs/one/outbox": "rw"}
        order = list(made)
        assert all(
            order.index(parent) < order.index(path) for path in order for parent in path.parents if parent in made
        )
        assert made[Path("/dev")].kind == "dev"

    def test_what_is_hidden_stays_hidden_whoever_asks(self, stage) -> None:
        secret = stage.repo / ".env"
        assert (
            bubblewrap.mounts(stage.cell("full", read=(stage.repo, secret), write=(secret,), hide=(secret,)))[
                secret
            ].kind
            == "empty"
        )


class TestFind:
    def test_only_where_no_agent_can_write(self, tmp_path: Path) -> None:
        """P27: neither a relative entry of PATH nor one inside of the airlock gives the program that walls it in."""
        fake = tmp_path / "bin" / "bwrap"
        fake.parent.mkdir()
        fake.write_text("#!/bin/sh\n")
        fake.chmod(0o755)
        assert bubblewrap.find(str(fake.parent), ()) == fake
        assert bubblewrap.find(str(fake.parent), (tmp_path,)) != fake
        assert bubblewrap.find(os.path.relpath(fake.parent), ()) != fake
        fake.chmod(0o777)
        assert bubblewrap.find(str(fake.parent), ()) != fake
        fake.chmod(0o755)
        fake.parent.chmod(0o777)
        assert bubblewrap.find(str(fake.parent), ()) != fake

    @pytest.mark.parametrize(("said", "version"), [("bubblewrap 0.11.1", (0, 11, 1)), ("", ()), ("what?", ())])
    def test_the_version_is_what_it_says(self, said: str, version: tuple[int, ...], tmp_path: Path) -> None:
        program = tmp_path / "bwrap"
        program.write_text(f"#!/bin/sh\necho '{said}'\n")
        program.chmod(0o755)
        assert bubblewrap.version(program) == version
        assert bubblewrap.version(tmp_path / "none") == ()


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(
    ("program", "number"), [("/no/such/program", 2), ("no-such-program", 2), ("/etc/passwd", 13), ("/", 13)]
)
def test_a_program_that_cannot_be_run_is_reported_alike(
    level: str, program: str, number: int, stage, tmp_path: Path
) -> None:
    """P26: the wall does not change what is said of a program that is not there."""
    require(level)
    with started([program], stage.cell(level), tmp_path) as child:
        assert hear(child, "error")["error"] == number
        assert hear(child, "exit") == {"exit": 127}


class TestOffer:
    @needs_bwrap
    def test_a_machine_with_bubblewrap_offers_full(self) -> None:
        assert sandbox.offered({"PATH": os.defpath}, None) == sandbox.Offer("full", "", "")
        assert sandbox.offered({"PATH": os.defpath}, None, "auto").level == "full"

    def test_at_most_what_is_wanted(self) -> None:
        require("partial")
        assert sandbox.offered({"PATH": os.defpath}, None, "partial").level == "partial"
        assert sandbox.offered({"PATH": os.defpath}, None, "none").level == "none"

    @pytest.mark.parametrize(
        ("says", "hint"),
        [
            ("bwrap: setting up uid map: Permission denied", "apparmor"),
            ("bwrap: No permissions to create new namespace", "sysctl"),
            ("bwrap: strange", "bwrap --unshare-user"),
        ],
    )
    def test_a_bubblewrap_that_does_not_work_is_found_out(self, says: str, hint: str, tmp_path: Path) -> None:
        """A level is what is measured, not what is installed; the way down is said and never silent."""
        fake = tmp_path / "bwrap"
        fake.write_text(f"#!/bin/sh\necho '{says}' >&2\nexit 1\n")
        fake.chmod(0o755)
        found = sandbox.offered({"PATH": f"{tmp_path}:{os.defpath}"}, None)
        assert found.level in {"partial", "none"}
        assert says.removeprefix("bwrap: ") in found.why
        assert hint in bubblewrap.why_not(says, container=False)[1]
        assert "security-opt" in bubblewrap.why_not(says, container=True)[1]

    def test_a_wall_with_a_hole_is_no_wall(self, tmp_path: Path) -> None:
        """A program that says it is bubblewrap and walls nothing in is caught by the acts that had to fail."""
        fake = tmp_path / "bwrap"
        fake.write_text('#!/bin/sh\nwhile [ "$1" != -- ]; do shift; done; shift; exec "$@"\n')
        fake.chmod(0o755)
        found = sandbox.offered({"PATH": f"{tmp_path}:{os.defpath}"}, None)
        assert found.level != "full"
        assert "reads what it may not" in found.why

    @needs_bwrap
    def test_the_full_answer_is_kept_and_not_believed_from_others(self, tmp_path: Path) -> None:
        real, cache = bubblewrap.find(os.defpath, ()), tmp_path / "cache"
        noting = tmp_path / "bwrap"
        noting.write_text(f'#!/bin/sh\necho x >> {tmp_path}/asked\nexec {real} "$@"\n')
        noting.chmod(0o755)
        environ = {"PATH": f"{tmp_path}:{os.defpath}"}

        def asked() -> int:
            assert sandbox.offered(environ, cache).level == "full"
            return len((tmp_path / "asked").read_text().split())

        first = asked()
        assert asked() == first
        kept = next(cache.iterdir())
        assert stat.S_IMODE(kept.stat().st_mode) == 0o600
        # One that others could have written is asked for anew, and so is a broken one.
        kept.chmod(0o666)
        assert asked() > first
        for broken in ("", "[]", '{"key": 1}'):
            next(cache.iterdir()).write_text(broken)
            before = len((tmp_path / "asked").read_text().split())
            assert asked() > before

    def test_less_than_was_asked_for_is_tried_again(self, tmp_path: Path) -> None:
        """What was missing may have been installed or allowed by then."""
        fake, cache = tmp_path / "bwrap", tmp_path / "cache"
        fake.write_text(f"#!/bin/sh\necho x >> {tmp_path}/asked\nexit 1\n")
        fake.chmod(0o755)
        counts = []
        for _ in range(2):
            assert sandbox.offered({"PATH": f"{tmp_path}:{os.defpath}"}, cache).level != "full"
            counts.append(len((tmp_path / "asked").read_text().split()))
        assert counts[1] > counts[0]
        assert not cache.exists()

    def test_a_cache_that_cannot_be_written_is_done_without(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("x")
        assert sandbox.offered({"PATH": os.defpath}, tmp_path / "file", "partial").level in {"partial", "none"}

    @pytest.mark.parametrize(
        "offer",
        [
            sandbox.Offer("full", "", ""),
            sandbox.Offer("partial", "no userns", "type this"),
            sandbox.Offer("none", "w", ""),
        ],
    )
    def test_it_is_described_for_people(self, offer: sandbox.Offer) -> None:
        lines = sandbox.describe(offer)
        assert offer.level in lines[0]
        assert (f"Type: {offer.hint}" in lines) == bool(offer.hint)
        assert (f"Why: {offer.why}." in lines) == bool(offer.why)


def test_no_level_is_quietly_another(tmp_path: Path) -> None:
    """A run that was promised a wall does not start without one."""
    cell = Cell(level="full", cwd=tmp_path, write=(Path("/"),))
    with pytest.raises(HostError, match="bubblewrap is not installed"):
        sandbox.wrap(["/bin/true"], cell, {"PATH": ""})


@pytest.mark.parametrize(
    ("text", "readable"), [("[core]\n", True), ("[remote]\nurl = https://me:hunter2secret@example.org/x\n", False)]
)
def test_under_partial_a_file_with_a_secret_is_shut(text: str, readable: bool, stage, tmp_path: Path) -> None:
    """S04: Landlock cannot show another content, so a configuration that holds a password is not shown at all."""
    require("partial")
    config = stage.repo / ".git" / "config"
    config.write_text(text)
    found = act(
        {"see": "Path(here['config']).read_text()"},
        stage.cell("partial", instead={config: tmp_path}),
        tmp_path,
        config=str(config),
    )
    assert (found["see"] == "done") == readable


@needs_bwrap
def test_a_supervisor_killed_takes_the_sandbox_with_it(stage, tmp_path: Path, mark: str) -> None:
    """P03: SIGKILL of the supervisor leaves nothing, whatever the tree inside does."""
    argv = fakes.program(
        stage.airlock / "evil.py", fakes.EVIL_TREE + "print('ready', flush=True)\ntime.sleep(300)", mark
    )
    runner = tmp_path / "supervisor.py"
    runner.write_text(
        f"import sys, time\nsys.path.insert(0, {str(world.PROJECT)!r})\nfrom pathlib import Path\nfrom tests.support import cells\n"
        f"from agents.cell import Cell\ncell = Cell(level='full', cwd=Path({str(stage.airlock)!r}), write=(Path({str(stage.airlock)!r}),))\n"
        f"with cells.started({argv!r}, cell, Path({str(tmp_path)!r})) as child:\n    time.sleep(300)\n"
    )
    supervisor = subprocess.Popen([sys.executable, str(runner)])
    try:
        world.eventually(lambda: len(world.tree_of(mark)) >= fakes.EVIL_COUNT + 2)
    finally:
        supervisor.kill()
        supervisor.wait()
    world.eventually(lambda: not world.tree_of(mark))


def test_limits_hold_without_a_wall_too(tmp_path: Path) -> None:
    """S12: no core file, and no file larger than allowed."""
    cell = Cell(level="none", cwd=tmp_path, limits=Limits(file_size=4096))
    done = checks.run_command(
        "ulimit -c; head -c 9000 /dev/zero > big", cell, cells.ENV, timeout=30, log=tmp_path / "log", limit=10_000
    )
    assert done.tail.startswith("0\n")
    assert (tmp_path / "big").stat().st_size == 4096
    assert records.replace(cell, level="full").level == "full"
