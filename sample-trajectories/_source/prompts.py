"""The wording these runs were started with. It is ours; no agent's own prompt is copied."""

SYSTEM = """You are a software engineer working in a terminal. You solve one issue in one repository.

Work in this order: understand the code, reproduce the problem, change as little as needed, check it, stop.
Hidden tests decide whether the issue is resolved. Do not change the tests to fit your change."""

SYSTEM_TEXT = """You work in a shell, one command at a time.

Answer with a line that starts with THOUGHT and exactly one code block that holds the command:

```bash
the command
```"""

SYSTEM_CALLS = "You work in a shell through the tool `bash`. Every answer calls it at least once."

SYSTEM_WINDOW = """You work in a shell that also has an editor showing 40 lines of a file at a time.

COMMANDS:
open <path> [<line>]: show a file, from the line on
goto <line>: move the window
search_dir <text> [<dir>]: which files hold the text
search_file <text> [<path>]: which lines hold the text
create <path>: make a new, empty file and open it
edit <first>:<last> ... end_of_edit: put the given text in place of these lines of the open file
submit: hand in the changes

Answer with a discussion and one command in a code block."""


def task(place, issue):
    return f"""<uploaded_files>
{place}
</uploaded_files>

The directory {place} holds a Python repository. Please change the code so that this issue is solved:

<issue_description>
{issue.strip()}
</issue_description>

The tests that come with the repository pass and have to keep passing (`python -m unittest`). There is no network.
"""


def _tool(name, description, required, **properties):
    return {
        "type": "function",
        "function": {
            "name": name,
            "description": description,
            "parameters": {"type": "object", "properties": properties, "required": required},
        },
    }


def _text(description, **more):
    return {"type": "string", "description": description, **more}


BASH = _tool("bash", "Run a command in bash.", ["command"], command=_text("The command to run"))
EXECUTE_BASH = _tool(
    "execute_bash",
    "Run a command in the shell. The working directory is kept between calls.",
    ["command"],
    command=_text("The command to run"),
)
EDITOR = _tool(
    "str_replace_editor",
    "View a file or a directory, create a file, replace a text that occurs exactly once, insert lines after a line.",
    ["command", "path"],
    command=_text("What to do", enum=["view", "create", "str_replace", "insert"]),
    path=_text("An absolute path"),
    file_text=_text("For create: the whole text"),
    old_str=_text("For str_replace: the text to replace"),
    new_str=_text("For str_replace and insert: the new text"),
    insert_line={"type": "integer", "description": "For insert: insert after this line"},
    view_range={"type": "array", "items": {"type": "integer"}, "description": "For view: first and last line"},
)
THINK = _tool("think", "Write down a thought. Nothing is run.", ["thought"], thought=_text("The thought"))
FINISH = _tool("finish", "End the work on this issue.", ["message"], message=_text("What was done"))
SUBMIT = _tool("submit", "Hand in the changes.", [])

CODEACT = [EXECUTE_BASH, THINK, FINISH, EDITOR]
SWE_AGENT = [BASH, EDITOR, SUBMIT]
