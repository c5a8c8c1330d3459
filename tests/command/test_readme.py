"""The commands of README.md and docs/reference/command.md that run in a clone as they stand. The test shortens measurements and leaves
the peaks of the machine, which take half a minute, to test_bench_machine.py."""
import os
import re
import shlex

import command_case
from command_case import DONE, VERDICT, CommandTest, run

MEASURED = ("profile", "bench", "recommend", "metrics", "check")
SHORT = ("-t", "0.1")
LEFT_OUT = ("machine",)
LIMITS = ("--threshold", "--latency-bound")  # a busy machine may miss them


class ReadmeTest(CommandTest):
    def lines(self, page, start, end):
        """The commands of `page` from the heading `start` to the line that begins with `end`."""
        with open(os.path.join(command_case.SOURCE, page), encoding="utf-8") as file:
            text = file.read()
        block = text[text.index(start):text.index(end)]
        return [shlex.split(line, comments=True)[1:] for line in re.findall(r"^    build/prony .*", block, re.M)]

    def test_lines_run(self):
        next_steps = self.lines("README.md", "## Five things to do next", "## Speed")
        self.assertEqual(len(next_steps), 5)
        examples = self.lines("docs/reference/command.md", "These lines run in a clone as they stand", "The next lines need files")
        self.assertGreater(len(examples), 10)
        lines = next_steps + examples
        for name in ("models", "tests"):
            os.symlink(os.path.join(command_case.SOURCE, name), self.path(name))
        for line in lines:
            if line[0] in LEFT_OUT:
                continue
            line = [("2s" if before == "--budget" else word) for before, word in zip(["", *line], line)]
            with self.subTest(" ".join(line)):
                code, out, err = run(*line, *(SHORT if line[0] in MEASURED else ()), prepare=lambda: os.chdir(self.folder))
                self.assertIn(code, (DONE, VERDICT) if set(LIMITS) & set(line) else (DONE,), err)
                self.assertTrue(out, line)
        for written in ("report.json", "report.html", "out/output_0.npy", "part.onnx"):
            self.assertTrue(os.path.getsize(self.path(written)), written)


if __name__ == "__main__":
    command_case.main()
