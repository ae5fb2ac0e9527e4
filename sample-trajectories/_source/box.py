"""A working copy, a shell in it, and the editor tools an agent gets."""

import difflib
import os
import pty
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PYTHON_BIN = str(Path(sys.executable).resolve().parent)


def environment(home):
    return {
        "PATH": f"{PYTHON_BIN}:/usr/local/bin:/usr/bin:/bin",
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC",
        "TERM": "xterm-256color",
        "PAGER": "cat",
        "GIT_PAGER": "cat",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONHASHSEED": "0",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_COUNT": "5",
        "GIT_CONFIG_KEY_0": "user.name",
        "GIT_CONFIG_VALUE_0": "agent",
        "GIT_CONFIG_KEY_1": "user.email",
        "GIT_CONFIG_VALUE_1": "agent@example.invalid",
        "GIT_CONFIG_KEY_2": "init.defaultBranch",
        "GIT_CONFIG_VALUE_2": "main",
        "GIT_CONFIG_KEY_3": "core.abbrev",
        "GIT_CONFIG_VALUE_3": "7",
        "GIT_CONFIG_KEY_4": "advice.detachedHead",
        "GIT_CONFIG_VALUE_4": "false",
    }


def build_origin(issue_dir, target):
    """Make the repository with its history; return the base commit."""
    home = target.parent
    env = environment(home)
    subprocess.run(["git", "init", "-q", str(target)], check=True, env=env)
    for line in (issue_dir / "commits.txt").read_text().splitlines():
        date, author, message, files = [part.strip() for part in line.split("|")]
        for entry in files.split():
            name, _, source = entry.partition("<")
            place = target / name
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(issue_dir / (source or f"repo/{name}"), place)
        stamp = dict(env, GIT_AUTHOR_DATE=date, GIT_COMMITTER_DATE=date)
        mail = author.lower().replace(" ", ".") + "@example.invalid"
        for key in ("AUTHOR", "COMMITTER"):
            stamp[f"GIT_{key}_NAME"], stamp[f"GIT_{key}_EMAIL"] = author, mail
        subprocess.run(["git", "add", "-A"], cwd=target, check=True, env=stamp)
        subprocess.run(["git", "commit", "-q", "-m", message], cwd=target, check=True, env=stamp)
    for source in sorted((issue_dir / "repo").rglob("*")):
        if source.is_file() and "__pycache__" not in source.parts:
            built = target / source.relative_to(issue_dir / "repo")
            assert built.read_bytes() == source.read_bytes(), f"commits.txt misses {built}"
    done = subprocess.run(["git", "rev-parse", "HEAD"], cwd=target, check=True, env=env, capture_output=True, text=True)
    return done.stdout.strip()


class Box:
    """A fresh clone at `place` (such as /testbed), removed at the end."""

    def __init__(self, origin, place, terminal=False):
        self.place = Path(place)
        self.terminal = terminal
        self.seconds = 0.0
        if self.place.exists():
            raise SystemExit(f"{place} exists already: run this in a container, or remove it")
        self.home = Path(tempfile.mkdtemp(prefix="agent-home-"))
        self.env = environment(self.home)
        self.made = [p for p in (self.place.parent,) if not p.exists()]
        self.place.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["git", "clone", "-q", str(origin), str(self.place)], check=True, env=self.env)
        subprocess.run(["git", "remote", "remove", "origin"], cwd=self.place, check=True, env=self.env)
        self.cwd = str(self.place)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.place, ignore_errors=True)
        shutil.rmtree(self.home, ignore_errors=True)
        for path in self.made:
            path.rmdir()

    def run(self, command, terminal=None, keep_cwd=True):
        """Run `command` in bash; return (output, exit code)."""
        read_end, write_end = os.pipe()
        tail = f"\n__rc=$?; pwd >&{write_end}; exit $__rc" if keep_cwd else ""
        argv = ["bash", "-c", command + tail]
        options = dict(cwd=self.cwd, env=self.env, stdin=subprocess.DEVNULL, pass_fds=[write_end])
        began = time.monotonic()
        if self.terminal if terminal is None else terminal:
            data, code = _run_on_terminal(argv, options)
        else:
            done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60, **options)
            data, code = done.stdout, done.returncode
        self.seconds = time.monotonic() - began
        os.close(write_end)
        with os.fdopen(read_end) as pipe:
            where = pipe.read().strip()
        if where:
            self.cwd = where
        return data.decode("utf-8", "backslashreplace"), code

    # The str_replace editor ------------------------------------------------

    def view(self, path, first=None, last=None):
        if Path(path).is_dir():
            out, _ = self.run(f"cd {path} && find . -maxdepth 2 -not -path '*/.*' | sort", False, False)
            return f"Files under {path}, two levels deep:\n{out.rstrip()}", True
        if not Path(path).exists():
            return f"ERROR: the path {path} does not exist.", False
        lines = Path(path).read_text().split("\n")
        first, last = first or 1, min(last or len(lines), len(lines))
        return f"Contents of {path} with line numbers:\n{_numbered(lines, first, last)}", True

    def create(self, path, text):
        if Path(path).exists():
            return f"ERROR: the file {path} exists already; `create` does not overwrite.", False
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_text(text)
        return f"Created the file {path}.", True

    def replace(self, path, old, new):
        if not Path(path).exists():
            return f"ERROR: the path {path} does not exist.", False
        text = Path(path).read_text()
        count = text.count(old)
        if count == 0:
            return f"ERROR: nothing was replaced: old_str does not occur in {path} exactly as given.", False
        if count > 1:
            places = [text[:i].count("\n") + 1 for i in range(len(text)) if text.startswith(old, i)]
            return f"ERROR: nothing was replaced: old_str occurs {count} times in {path}, in lines {places}. Make it unique.", False
        at = text.index(old)
        Path(path).write_text(text.replace(old, new, 1))
        first = max(1, text[:at].count("\n") + 1 - 3)
        lines = Path(path).read_text().split("\n")
        last = min(len(lines), text[:at].count("\n") + 1 + new.count("\n") + 3)
        return f"Edited {path}. The place now reads:\n{_numbered(lines, first, last)}", True

    def insert(self, path, line, text):
        lines = Path(path).read_text().split("\n")
        lines[line:line] = text.rstrip("\n").split("\n")
        Path(path).write_text("\n".join(lines))
        first, last = max(1, line - 2), min(len(lines), line + text.rstrip("\n").count("\n") + 4)
        return f"Edited {path}. The place now reads:\n{_numbered(lines, first, last)}", True


def unified(path, before, after):
    lines = difflib.unified_diff(
        before.splitlines(), after.splitlines(), fromfile=str(path), tofile=str(path), lineterm="", n=2
    )
    return "\n".join(lines)


def _numbered(lines, first, last):
    return "\n".join(f"{n:6}\t{lines[n - 1]}" for n in range(first, last + 1))


def _run_on_terminal(argv, options):
    master, slave = pty.openpty()
    process = subprocess.Popen(argv, stdout=slave, stderr=slave, **options)
    os.close(slave)
    chunks = []
    while True:
        try:
            chunk = os.read(master, 65536)
        except OSError:
            break
        if not chunk:
            break
        chunks.append(chunk)
    os.close(master)
    return b"".join(chunks), process.wait(60)
