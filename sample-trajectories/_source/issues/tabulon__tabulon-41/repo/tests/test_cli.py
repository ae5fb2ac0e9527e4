import io
import unittest

from tabulon.cli import main


def run(text, *argv):
    out = io.StringIO()
    main(list(argv), stdin=io.StringIO(text), stdout=out)
    return out.getvalue()


class CliTests(unittest.TestCase):
    def test_csv(self):
        self.assertEqual(run("n,v\na,1\n", "-s", "plain"), "n  v\na  1\n")

    def test_delimiter(self):
        self.assertEqual(run("n;v\na;1\n", "-d", ";", "-s", "plain"), "n  v\na  1\n")

    def test_empty(self):
        self.assertEqual(run(""), "")


if __name__ == "__main__":
    unittest.main()
