# ruff: noqa: INP001 - run by its path, never imported
"""Prepare this checkout: python3 scripts/set_up.py demo|dev|board|browser.

``demo`` makes .venv with all that a run needs, ``dev`` adds the tools of ``make check`` and ``make
test``, ``board`` installs the Node packages of the board, ``browser`` finds or installs Chromium
for the tests of the status page (after ``dev``). What is there and current is left alone; that
takes a few hundredths of a second.

It is written in a Python that old interpreters can read too, so that they can say what is missing.
"""

import contextlib
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
BOARD = ROOT / "bull-board"
LEAST_PYTHON = (3, 11)
TOO_NEW_PYTHON = (3, 15)  # onnxruntime has no packages for it yet
LEAST_NODE = 20
CHROMIUMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
OTHER_PYTHONS = ("python3.13", "python3.12", "python3.11", "python3.14")
STOP = 2


class CannotSetUp(Exception):
    """Something is missing that only a person can provide; the message says what."""


def say(sentence):
    """Print one line of progress for the person who waits."""
    sys.stderr.write("==> " + sentence + "\n")
    sys.stderr.flush()


def fingerprint(*parts):
    """Return a hash over texts and over the content of files."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part.read_bytes() if isinstance(part, Path) else str(part).encode())
        digest.update(b"\0")
    return digest.hexdigest()


@contextlib.contextmanager
def one_at_a_time():
    """Let a second make wait until the first one has finished its set-up.

    The lock is the kernel's: it ends with the process that holds it, however that ends.
    """
    folder = ROOT / ".make"
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            say("Waiting for another set-up of this checkout to finish.")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def is_current(stamp, expected):
    """Tell whether the step behind this stamp was finished for exactly these inputs."""
    try:
        return stamp.read_text() == expected
    except OSError:
        return False


def run(command, what, **options):
    """Run a step of the set-up; what it prints goes to the terminal.

    Raises:
        CannotSetUp: it failed.
    """
    code = subprocess.run(command, check=False, **options).returncode  # noqa: S603 - our own steps
    if code:
        raise CannotSetUp(
            "%s failed (exit code %d); the lines above say why. Nothing is half done: the same "
            "command starts that step again." % (what, code)
        )


def use_another_python():
    """Start again under a Python that fits, if there is one on the PATH.

    Raises:
        CannotSetUp: there is none.
    """
    for name in OTHER_PYTHONS:
        found = shutil.which(name)
        if found:
            os.execv(found, [found, *sys.argv])  # noqa: S606 - found on the user's own PATH
    raise CannotSetUp(
        "drivefeed needs Python 3.11 to 3.14, and %s is Python %d.%d. Install one of them, or name "
        "it: make PYTHON=/path/to/python3.12 ..." % (sys.executable, *sys.version_info[:2])
    )


def make_venv():
    """Make .venv anew.

    Raises:
        CannotSetUp: this Python comes without venv or ensurepip.
    """
    missing = [name for name in ("venv", "ensurepip") if not can_import(name)]
    if missing:
        raise CannotSetUp(
            "%s comes without its module %s, so no virtual environment can be made. On Debian and "
            "Ubuntu: sudo apt-get install python3-venv" % (sys.executable, " and ".join(missing))
        )
    say("Making the virtual environment .venv with Python %d.%d." % sys.version_info[:2])
    shutil.rmtree(str(VENV), ignore_errors=True)
    run([sys.executable, "-m", "venv", str(VENV)], "Making the virtual environment")


def can_import(name):
    """Tell whether this Python has the module."""
    import importlib.util

    return importlib.util.find_spec(name) is not None


def set_up_python(kind):
    """Bring .venv to the state of requirements/KIND.lock.

    Raises:
        CannotSetUp: Python or a step of the installation failed.
    """
    project = ROOT / "pyproject.toml"
    stamps = {name: VENV / ("drivefeed-%s.stamp" % name) for name in ("demo", "dev")}
    # A moved checkout has scripts that point to the old place: its path is part of the stamp.
    wanted = {
        name: fingerprint(str(VENV), project, ROOT / "requirements" / (name + ".lock"))
        for name in stamps
    }
    enough = ("demo", "dev") if kind == "demo" else ("dev",)  # dev.lock holds all of demo.lock
    if PYTHON.exists() and any(is_current(stamps[name], wanted[name]) for name in enough):
        return
    if not LEAST_PYTHON <= sys.version_info < TOO_NEW_PYTHON:
        use_another_python()
    with one_at_a_time():
        if any(is_current(stamps[name], wanted[name]) for name in enough):
            return
        place = VENV / "drivefeed-place"
        if not (PYTHON.exists() and is_current(place, str(VENV))):
            make_venv()
            place.write_text(str(VENV))
        for stamp in stamps.values():
            stamp.unlink(missing_ok=True)
        install_python_packages(ROOT / "requirements" / (kind + ".lock"))
        stamps[kind].write_text(wanted[kind])


def install_python_packages(lock):
    """Install exactly what the lock file names, and this checkout on top of it.

    Raises:
        CannotSetUp: pip failed.
    """
    pip = [str(PYTHON), "-m", "pip", "--disable-pip-version-check", "--no-input", "install"]
    # A setting for all of a user's pips would break this one.
    environment = dict(os.environ, PIP_USER="0", PIP_REQUIRE_VIRTUALENV="0")
    say("Installing the packages of %s; the first time takes a minute or two." % lock.name)
    # Compiling all of them would double the time, and most of msgraph-sdk is never imported.
    step = [*pip, "--no-compile", "--require-hashes", "--no-deps", "-r", str(lock)]
    run(step, "Installing the packages", env=environment)
    say("Installing drivefeed from this checkout.")
    step = [*pip, "--quiet", "--no-deps", "--no-build-isolation", "-e", str(ROOT)]
    run(step, "Installing drivefeed", env=environment)


def set_up_board():
    """Install the Node packages of the board.

    Raises:
        CannotSetUp: Node is missing or too old, or npm failed.
    """
    stamp = BOARD / "node_modules" / ".drivefeed.stamp"
    wanted = fingerprint(str(BOARD), BOARD / "package.json", BOARD / "package-lock.json")
    if is_current(stamp, wanted):
        return
    check_node()
    with one_at_a_time():
        if is_current(stamp, wanted):
            return
        say("Installing the Node packages of the board.")
        run(["npm", "ci", "--no-fund", "--no-audit"], "Installing the Node packages", cwd=BOARD)
        stamp.write_text(wanted)


def check_node():
    """Check that Node and npm are there and new enough.

    Raises:
        CannotSetUp: they are not.
    """
    node = shutil.which("node")
    if not node or not shutil.which("npm"):
        raise CannotSetUp(
            "The board needs Node %d or newer with npm, and there is none on the PATH. Install it "
            "(nodejs.org, or your system's packages) and give the command again." % LEAST_NODE
        )
    printed = subprocess.run([node, "--version"], check=False, stdout=subprocess.PIPE)  # noqa: S603
    version = printed.stdout.decode().strip().lstrip("v")
    if not version.split(".")[0].isdigit() or int(version.split(".")[0]) < LEAST_NODE:
        raise CannotSetUp(
            "The board needs Node %d or newer, and %s is %s." % (LEAST_NODE, node, version or "?")
        )


def set_up_browser():
    """Find Chromium, or install it: Debian's package where we may, else Playwright's own.

    Raises:
        CannotSetUp: it cannot be installed.
    """
    if any(shutil.which(name) for name in CHROMIUMS):
        return
    # Playwright's own is kept in the user's cache, so a new checkout may find it there.
    find = "from playwright.sync_api import sync_playwright as start\nimport os, sys\n"
    find += "with start() as one: sys.exit(not os.path.exists(one.chromium.executable_path))"
    with one_at_a_time():
        # The package's name is another one, or means another thing, outside of Debian.
        if os.geteuid() == 0 and shutil.which("apt-get") and Path("/etc/debian_version").exists():
            say("Installing Chromium for the tests of the status page.")
            environment = dict(os.environ, DEBIAN_FRONTEND="noninteractive")
            for step in (["update"], ["install", "-y", "--no-install-recommends", "chromium"]):
                subprocess.run(["apt-get", "-qq", *step], check=False, env=environment)  # noqa: S603, S607 - where it fails, the other way is taken
            if any(shutil.which(name) for name in CHROMIUMS):
                return
        if subprocess.run([str(PYTHON), "-c", find], check=False).returncode == 0:  # noqa: S603 - our own step
            return
        say("Installing Playwright's Chromium for the tests of the status page.")
        try:
            run([str(PYTHON), "-m", "playwright", "install", "chromium"], "Installing Chromium")
        except CannotSetUp as error:
            raise CannotSetUp(
                "%s Or install Chromium or Chrome yourself, so that it is on the PATH." % error
            ) from None


def main(arguments):
    """Run the steps that were asked for, and return the exit code."""
    steps = {
        "demo": lambda: set_up_python("demo"),
        "dev": lambda: set_up_python("dev"),
        "board": set_up_board,
        "browser": set_up_browser,
    }
    try:
        for name in arguments:
            steps[name]()
    except CannotSetUp as error:
        sys.stderr.write("\n%s\n" % error)
        return STOP
    except KeyError as error:
        known = ", ".join(steps)
        sys.stderr.write("There is no set-up called %s; there are %s.\n" % (error, known))
        return STOP
    except KeyboardInterrupt:
        sys.stderr.write("\nStopped. The same command goes on from here.\n")
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
