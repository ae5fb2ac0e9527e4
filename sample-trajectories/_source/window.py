"""A small editor with a window of 40 lines, as SWE-agent 0.x had one."""

import re
from pathlib import Path

SIZE = 40


class Window:
    def __init__(self, box):
        self.box, self.path, self.first = box, None, 1

    def prompt(self):
        return f"(Open file: {self.path or 'n/a'})\n(Current directory: {self.box.cwd})\nbash-$"

    def do(self, command):
        word, _, rest = command.partition(" ")
        action = getattr(self, f"_{word}", None) if re.fullmatch(r"open|goto|create|edit|search_dir|search_file", word) else None
        return action(rest) if action else self.box.run(command)[0]

    def _full(self, name):
        return name if name.startswith("/") else str(Path(self.box.cwd) / name)

    def _open(self, rest):
        name, *line = rest.split()
        if not Path(self._full(name)).is_file():
            return f"File {name} not found"
        self.path = self._full(name)
        self.first = max(1, int(line[0]) - SIZE // 6) if line else 1
        return self.show()

    def _goto(self, rest):
        if not self.path:
            return "No file open. Use the open command first."
        self.first = max(1, int(rest) - SIZE // 6)
        return self.show()

    def _create(self, rest):
        path = self._full(rest.strip())
        if Path(path).exists():
            return f"Error: File '{rest.strip()}' already exists."
        Path(path).write_text("\n")
        self.path, self.first = path, 1
        return self.show()

    def _edit(self, rest):
        if not self.path:
            return "No file open. Use the open command first."
        head, _, body = rest.partition("\n")
        first, last = (int(n) for n in head.split(":"))
        text = re.sub(r"\n?end_of_edit$", "", body)
        lines = Path(self.path).read_text().split("\n")
        changed = lines[: first - 1] + (text.split("\n") if text else []) + lines[last:]
        if self.path.endswith(".py"):
            try:
                compile("\n".join(changed), self.path, "exec")
            except SyntaxError as err:
                return (
                    "Your proposed edit has introduced new syntax error(s), so it was NOT applied.\n"
                    f"ERRORS:\n- line {err.lineno}: {type(err).__name__}: {err.msg}"
                )
        Path(self.path).write_text("\n".join(changed))
        self.first = max(1, first - SIZE // 6)
        return self.show() + "\nFile updated. Please check the indentation and that no line is there twice."

    def _search_file(self, rest):
        text, path = self._words(rest, self.path)
        hits = [f"Line {n}:{line}" for n, line in enumerate(Path(path).read_text().split("\n"), 1) if text in line]
        return "\n".join([f'Found {len(hits)} matches for "{text}" in {path}:', *hits])

    def _search_dir(self, rest):
        text, path = self._words(rest, self.box.cwd)
        hits = []
        for file in sorted(Path(path).rglob("*.py")):
            count = file.read_text().count(text)
            if count:
                hits.append(f"{file} ({count} matches)")
        return "\n".join([f'Found matches for "{text}" in {len(hits)} files under {path}:', *hits])

    def _words(self, rest, default):
        found = re.match(r'"([^"]*)"\s*(\S*)$|(\S+)\s*(\S*)$', rest)
        text, path = found[1] or found[3], found[2] or found[4]
        return text, self._full(path) if path else default

    def show(self):
        lines = Path(self.path).read_text().split("\n")
        total = len(lines) - (lines[-1] == "")
        last = min(total, self.first + SIZE - 1)
        shown = [f"{n}:{lines[n - 1]}" for n in range(self.first, last + 1)]
        head = [f"[File: {self.path} ({total} lines total)]"]
        if self.first > 1:
            head.append(f"({self.first - 1} more lines above)")
        if last < total:
            shown.append(f"({total - last} more lines below)")
        return "\n".join(head + shown)
