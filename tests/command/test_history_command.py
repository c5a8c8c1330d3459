#!/usr/bin/env python3
"""Histories: what --history keeps, prony history with its actions and formats, several writers and killed ones, files that
are no histories.

    test_history_command.py PRONY SOURCE_DIR [unittest options]
"""
import csv
import json
import os
import random
import resource
import shutil
import sqlite3
import struct
import subprocess
import sys
import time
import zipfile

import command_case
import onnx_bytes as ob
from command_case import DONE, FAILED, USAGE, VERDICT, CommandTest, Schema, run

QUICK = ["-q", "-r", "5", "-w", "1"]


def has_sqlite():
    return "sqlite" in subprocess.run([command_case.PRONY, "--version"], stdout=subprocess.PIPE, check=True).stdout.decode()


class HistoryTest(CommandTest):
    def setUp(self):
        super().setUp()
        if not has_sqlite():
            self.skipTest("this build has no SQLite")
        self.db = self.path("runs.db")

    def query(self, sql):
        connection = sqlite3.connect(self.db)
        rows = connection.execute(sql).fetchall()
        connection.close()
        return rows

    def measured(self):
        """A report to make others of."""
        path = self.path("measured.json")
        if not os.path.exists(path):
            code, _, err = run("profile", self.digits, *QUICK, "--json", path)
            self.assertEqual(code, DONE, err)
        return json.loads(self.read(path))

    def report_file(self, number, times=1.0, load="quiet", model="resnet50.onnx", layer=None, **changes):
        """A report of run `number`, two hours after the one before, `times` as slow as the measured one."""
        report = self.measured()
        report["created"] = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(1_700_000_000 + 7200 * number))
        report["model"]["name"] = model
        report["disturbance"] = {"involuntary_switches": 0, "verdict": load}
        scale = 10_000_000 / report["latency_ns"]["median"] * times
        for key, value in report["latency_ns"].items():
            if key == "samples" or key == "median_ci95":
                report["latency_ns"][key] = [int(v * scale) for v in value]
            elif key not in ("runs", "count", "valid", "warmup_detected") and isinstance(value, (int, float)):
                report["latency_ns"][key] = int(value * scale)
        for row in report["layers"]:
            for key in row.get("time_ns") or {}:
                row["time_ns"][key] = int(row["time_ns"][key] * 100 * (times if layer in (None, row["name"]) else 1))
        report.update(changes)
        return self.write("run%03d.json" % number, json.dumps(report).encode())

    def series(self, count, level, seed=1, **options):
        draw = random.Random(seed)
        files = [self.report_file(i, level(i) * draw.gauss(1, 0.01), **options) for i in range(count)]
        self.succeed("history", self.db, "import", "-q", *files)
        return files

    def document(self, name, *arguments):
        out = self.path("out.json")
        code, _, err = run("history", self.db, *arguments, "-q", "--json", out)
        document = json.loads(self.read(out))
        self.assertEqual(list(Schema(name).problems(document)), [])
        return code, document, err


class Keep(HistoryTest):
    def test_every_measuring_command_keeps_its_runs(self):
        profile = self.path("p.json")
        self.succeed("profile", self.digits, *QUICK, "--history", self.db, "--json", profile, "--label", "nightly", "--commit", "cafe")
        self.succeed("bench", self.digits, *QUICK, "-b", "1,2", "--history", self.db)
        self.succeed("bench", self.digits, "-q", "-t", "0.2", "--scenario", "single", "--history", self.db)
        run("scale", self.digits, *QUICK, "-x", "1,2", "--processes", "2", "--history", self.db)
        self.succeed("profile", *QUICK, "-b", "4", "--processes", "2", "--history", self.db)
        code, _, err = run("check", self.digits, *QUICK, "--threshold", "latency:1s", "--history", self.db)
        self.assertIn(code, (DONE, FAILED), err)  # the latter on a busy machine
        rows = self.query("SELECT document, label, project_commit, configurations.text FROM runs "
                          "JOIN configurations ON configurations.id = configuration ORDER BY runs.id")
        self.assertEqual(rows[0][:3], ("prony.report/1", "nightly", "cafe"))
        kinds = [row[3].split(",")[0] for row in rows]
        self.assertEqual([kinds.count(k) for k in ("profile", "profile of labelled data", "bench", "load single")],
                         [2, 1, 2, 1], rows)
        self.assertIn(kinds.count("scale"), (1, 2))
        self.assertGreater(self.query("SELECT count(*) FROM run_layers")[0][0], 10)
        before = len(rows)
        out = self.succeed("history", self.db, "import", profile)
        self.assertIn("0 stored, 1 known already", out)  # the same run by both ways
        self.assertEqual(len(self.query("SELECT id FROM runs")), before)
        code, document, _ = self.document("history")
        self.assertEqual((code, len(document["runs"])), (DONE, before))
        shown = self.succeed("history", self.db)
        self.assertLessEqual(max(map(len, shown.splitlines())), 200)
        self.assertIn("%d runs in" % before, shown)

    def test_eval_with_several_precisions(self):
        with zipfile.ZipFile(self.path("data.npz"), "w") as archive:
            archive.writestr("image.npy", ob.npy("<f4", [20, 1, 8, 8], struct.pack("<1280f", *[i % 16 / 16 for i in range(1280)])))
            archive.writestr("labels.npy", ob.npy("|u1", [20], bytes(i % 10 for i in range(20))))
        out = self.path("eval.json")
        code, _, err = run("eval", self.digits, self.path("data.npz"), "-p", "fp32,fast", "-q", "--history", self.db, "--json", out)
        self.assertEqual(code, DONE, err)
        rows = self.query("SELECT text, command FROM runs JOIN configurations ON configurations.id = configuration")
        self.assertEqual(len(rows), 2, rows)
        self.assertEqual(len({command for _, command in rows}), 1)  # one command stored both
        self.assertEqual({text.split(",")[0] for text, _ in rows}, {"profile of labelled data"})

    def test_runs_that_differ_are_not_one_group(self):
        """Scores of different evaluations do not share a level."""
        files = [self.report_file(i, evaluation={"metric": metric, "value": 0.5, "samples": samples})
                 for i, (metric, samples) in enumerate((("mse", 100), ("mse", 100), ("mse", 200), ("f1", 100)))]
        files.append(self.report_file(4))
        pinned = self.measured()["config"]
        files.append(self.report_file(5, config=dict(pinned, affinity="0")))
        files.append(self.report_file(6, config=dict(pinned, background_threads=1)))
        self.succeed("history", self.db, "import", "-q", *files)
        document = self.document("history")[1]
        self.assertEqual(sorted(group["runs"] for group in document["groups"]), [1, 1, 1, 1, 1, 2])

    def test_the_projects_commit_is_read_without_git(self):
        project, inside = self.path("project"), self.path("project/src/deep")
        os.makedirs(inside)
        git = os.path.join(project, ".git")
        os.makedirs(os.path.join(git, "refs", "heads"))
        first, second, third = "1" * 40, "2" * 40, "3" * 40

        def stored():
            code, _, err = run("profile", self.digits, *QUICK, "--history", self.db, prepare=lambda: os.chdir(inside))
            self.assertEqual(code, DONE, err)
            return self.query("SELECT project_commit FROM runs ORDER BY id DESC LIMIT 1")[0][0]
        self.write("project/.git/HEAD", b"ref: refs/heads/main\n")
        self.write("project/.git/refs/heads/main", first.encode() + b"\n")
        self.assertEqual(stored(), first)
        os.remove(os.path.join(git, "refs", "heads", "main"))
        self.write("project/.git/packed-refs", ("# pack-refs\n%s refs/heads/other\n%s refs/heads/main\n" % (third, second)).encode())
        self.assertEqual(stored(), second)
        self.write("project/.git/HEAD", third.encode() + b"\n")
        self.assertEqual(stored(), third)
        os.makedirs(os.path.join(git, "worktrees", "w"))  # a work tree: HEAD of its own, references of the repository
        self.write("project/.git/worktrees/w/HEAD", b"ref: refs/heads/main\n")
        self.write("project/.git/worktrees/w/commondir", b"../..\n")
        self.write("project/src/.git", ("gitdir: %s/worktrees/w\n" % git).encode())
        self.assertEqual(stored(), second)
        self.write("project/src/.git", b"gitdir: ../nothing\n")
        self.assertEqual(stored(), "")

    def test_a_report_of_another_day_has_no_commit(self):
        """Today's commit of the working folder is that of runs measured now alone."""
        os.makedirs(self.path("project/.git"))
        self.write("project/.git/HEAD", b"1" * 40)
        stay = dict(prepare=lambda: os.chdir(self.path("project")))
        report, study, model = self.report_file(1), self.path("study.json"), os.path.abspath(self.digits)
        run("scale", model, *QUICK, "-x", "1", "--processes", "2", "--json", study)
        limit = ["--threshold", "latency:1s", "-q", "--history", self.db]
        for arguments in (["history", self.db, "import", report], ["check", self.report_file(3), *limit], ["check", model, *QUICK, *limit],
                          ["scale", study, "-q", "--history", self.db], ["check", self.report_file(2), *limit, "--commit", "cafe"]):
            code, _, err = run(*arguments, **stay)
            self.assertIn(code, (DONE, FAILED), err)  # the latter on a busy machine
        rows = self.query("SELECT document, label, project_commit FROM runs WHERE document != 'prony.study/1' ORDER BY id")
        self.assertEqual([row[2] for row in rows], ["", "", "1" * 40, "cafe"], rows)
        self.assertEqual({row[0] for row in self.query("SELECT project_commit FROM runs WHERE document = 'prony.study/1'")}, {""})

    def test_runs_without_a_date(self):
        undated = self.report_file(1)
        report = json.loads(self.read(undated))
        del report["created"]
        self.write("run001.json", json.dumps(report).encode())
        self.succeed("history", self.db, "import", "-q", self.report_file(0), undated, self.report_file(2))
        out = self.succeed("history", self.db, "--no-color")
        self.assertNotIn("1970", out)
        document = self.document("history")[1]
        self.assertEqual([row["time"] is None for row in document["runs"]], [True, False, False])
        self.assertIsNone(document["groups"][0]["first"])
        page = self.path("page.html")
        self.succeed("history", self.db, "-q", "--html", page)
        self.assertNotIn("1970", self.read(page).decode())
        self.succeed("profile", self.digits, *QUICK, "--history", self.db, "--history-keep", "400d")
        self.assertEqual(len(self.query("SELECT id FROM runs WHERE time = 0")), 1)  # its age is unknown
        self.assertEqual(len(self.query("SELECT id FROM runs")), 2)

    def test_old_runs_are_removed(self):
        self.succeed("history", self.db, "import", "-q", self.report_file(1))
        self.assertEqual(len(self.query("SELECT id FROM runs")), 1)
        self.succeed("profile", self.digits, *QUICK, "--history", self.db, "--history-keep", "400d")
        self.assertEqual(len(self.query("SELECT id FROM runs")), 1)  # the first is of 2023
        self.assertEqual(self.query("SELECT count(*) FROM run_values WHERE run NOT IN (SELECT id FROM runs)"), [(0,)])
        for age in ("d", "0d", "4x", "-1d", "1e99w"):
            self.refuse(USAGE, ["--history-keep"], "profile", self.digits, "--history", self.db, "--history-keep", age)


class Judge(HistoryTest):
    def test_check_and_trend_of_a_step(self):
        self.series(30, lambda i: 1.0)
        self.assertEqual(self.document("trend_check", "check")[0], DONE)
        conv = next(row["name"] for row in self.measured()["layers"] if row["op"] == "Conv")
        late = [self.report_file(30 + i, 1.08, layer=conv) for i in range(4)]
        self.succeed("history", self.db, "import", "-q", "--commit", "b" * 40, *late)
        code, document, err = self.document("trend_check", "check")
        self.assertEqual(code, VERDICT)
        self.assertIn("worse than the trend", err)
        self.assertFalse(document["passed"])
        self.assertEqual({c["metric"]: c["outcome"] for c in document["checks"]}["latency"], "worse")
        code, trend, _ = self.document("trend", "trend", "latency")
        self.assertEqual(code, DONE)
        change, = trend["changes"]
        self.assertEqual((change["kind"], change["direction"], change["first"]), ("step", "worse", 31))
        self.assertEqual((change["commit_before"], change["commit_after"]), (None, "b" * 40))
        self.assertEqual([layer["layer"] for layer in change["layers"]], [conv])
        again = self.document("trend", "trend", "latency")[1]
        self.assertEqual(again["changes"], trend["changes"])  # seeds are fixed
        text = self.succeed("history", self.db, "trend", "latency", "--model", "resnet50.onnx", "--no-color")
        self.assertIn("worse, step +", text)
        self.assertIn(conv, text)
        busy = self.report_file(40, 1.5, load="busy")
        self.succeed("history", self.db, "import", "-q", busy)
        code, document, err = self.document("trend_check", "check")
        self.assertEqual((code, document["regressions"]), (DONE, 0))
        self.assertIn("cannot be judged", err)
        self.assertEqual(self.document("trend_check", "check", "--strict")[0], VERDICT)
        self.assertEqual(self.document("trend_check", "check", "--ignore-load")[0], VERDICT)

    def test_a_planted_step_and_a_planted_drift_are_told_apart(self):
        self.series(84, lambda i: 1 + 0.12 * i / 84, model="drifting.onnx")
        self.series(84, lambda i: 1.07 if i >= 50 else 1.0, seed=2, model="stepping.onnx")
        _, trend, _ = self.document("trend", "trend", "latency")
        kinds = {(c["model"], c["kind"]) for c in trend["changes"]}
        self.assertEqual(kinds, {("drifting.onnx", "drift"), ("stepping.onnx", "step")})
        self.assertEqual(self.document("trend_check", "check", "--model", "drifting.onnx", "--metrics", "latency")[0], VERDICT)
        self.assertEqual(self.document("trend_check", "check", "--model", "stepping.onnx", "--metrics", "latency")[0], DONE)

    def test_exports(self):
        self.series(8, lambda i: 1.0)
        table, page = self.path("runs.csv"), self.path("page.html")
        self.succeed("history", self.db, "-q", "--csv", table, "--html", page, "--markdown", self.path("runs.md"))
        with open(table, encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual((len(rows), rows[0]["model"], rows[0]["load"]), (8, "resnet50.onnx", "quiet"))
        with open(self.path("runs_values.csv"), encoding="utf-8", newline="") as file:
            values = [row for row in csv.DictReader(file) if row["metric"] == "latency"]
        self.assertEqual(len(values), 8)
        self.assertAlmostEqual(float(values[0]["value"]) / 1e7, 1, delta=0.1)
        self.assertTrue(os.path.exists(self.path("runs_layers.csv")))
        text = self.read(page).decode()
        self.assertNotIn("<script", text)
        self.assertIn("Slowest layers of resnet50.onnx", text)
        self.succeed("history", self.db, "trend", "latency", "-q", "--csv", self.path("trend.csv"))
        self.assertTrue(os.path.exists(self.path("trend_changes.csv")))

    def test_usage(self):
        self.series(2, lambda i: 1.0)
        self.refuse(USAGE, ["unknown action 'tend'"], "history", self.db, "tend")
        self.refuse(USAGE, ["import needs files"], "history", self.db, "import")
        self.refuse(USAGE, ["too many"], "history", self.db, "check", "more")
        self.refuse(USAGE, ["belong to import"], "history", self.db, "--label", "x")
        self.refuse(FAILED, ["unknown metric 'speed'"], "history", self.db, "trend", "speed")
        self.refuse(FAILED, ["no run of the model 'other'"], "history", self.db, "--model", "other")
        code, out, err = run("history", self.db, "import", self.digits, self.report_file(5))
        self.assertEqual((code, out.count("1 stored")), (FAILED, 1), err)  # a bad file does not stop the next one


class Files(HistoryTest):
    def test_files_that_are_no_histories(self):
        report = self.report_file(1)
        self.write("text.db", b"this is a text, and longer than the header of a database\n" * 20)
        os.mkdir(self.path("folder.db"))
        other = sqlite3.connect(self.path("other.db"))
        other.execute("CREATE TABLE notes(text)")
        other.close()
        for name, word in (("text.db", "not an SQLite database"), ("folder.db", "it is a folder"), ("other.db", "another program")):
            self.refuse(FAILED, [name, word], "history", self.path(name))
            self.refuse(FAILED, [name, word], "history", self.path(name), "import", report)
        self.refuse(FAILED, ["absent.db", "No such file"], "history", self.path("absent.db"))
        self.refuse(FAILED, ["No such file"], "history", self.path("no/folder.db"), "import", report)

    def test_a_failed_opening_creates_no_file(self):
        folder = self.path("/".join(["f" * 200] * 3))  # SQLite takes no path of 512 characters or more
        os.makedirs(folder)
        self.refuse(FAILED, ["cannot open the history"], "history", folder + "/runs.db", "import", self.report_file(1))
        self.assertEqual(os.listdir(folder), [])

    def test_a_newer_file_is_refused_and_left_alone(self):
        self.succeed("history", self.db, "import", "-q", self.report_file(1))
        self.query("PRAGMA user_version = 9")
        self.refuse(FAILED, ["version 9", "later prony"], "history", self.db)
        out = self.path("report.json")
        code, _, err = run("profile", self.digits, *QUICK, "--json", out, "--history", self.db)
        self.assertEqual(code, FAILED)
        self.assertIn("the report is complete", err)
        self.assertEqual(json.loads(self.read(out))["schema"], "prony.report/1")
        self.assertEqual(self.query("SELECT count(*) FROM runs"), [(1,)])

    def test_a_verdict_wins_over_a_failed_history(self):
        self.write("text.db", b"this is a text file\n" * 20)
        for command in (["profile"], ["bench", "-b", "1,2"], ["check"]):
            code, _, err = run(command[0], self.digits, *command[1:], *QUICK, "--ignore-load", "--threshold", "latency:1ns",
                               "--history", self.path("text.db"))
            self.assertEqual(code, VERDICT, err)
            self.assertIn("the run is not in the history", err)

    def test_an_unfinished_creation_is_finished(self):
        """A process that was killed before its first commit leaves an empty database."""
        connection = sqlite3.connect(self.db)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.close()
        self.succeed("history", self.db, "import", "-q", self.report_file(1))
        self.assertEqual(self.query("PRAGMA user_version"), [(1,)])

    def test_a_full_disk(self):
        files = [self.report_file(i) for i in range(20)]

        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (65536, 65536))
        code, out, err = run("history", self.db, "import", *files, prepare=limit)
        self.assertEqual(code, FAILED)
        self.assertIn("runs.db", err)
        self.assertIn("may not grow", err)
        promised = out.count("1 stored")
        self.succeed("history", self.db, "import", "-q", *files)  # with room again, the rest is stored
        self.assertEqual(self.query("PRAGMA integrity_check"), [("ok",)])
        self.assertLess(promised, 20)
        self.assertEqual(self.query("SELECT count(*) FROM runs"), [(20,)])

    def test_a_read_only_file(self):
        self.succeed("history", self.db, "import", "-q", self.report_file(1))
        folder = self.path("kept")
        os.mkdir(folder)
        kept = shutil.copy(self.db, folder)
        report = self.report_file(2)
        os.chmod(kept, 0o444)
        os.chmod(report, 0o444)
        os.chmod(folder, 0o555)
        os.chmod(self.folder, 0o755)
        self.addCleanup(os.chmod, folder, 0o755)

        def ordinary():
            if os.geteuid() == 0:
                os.setgid(65534)
                os.setuid(65534)
        try:
            code, out, err = run("history", kept, prepare=ordinary)
        except (PermissionError, subprocess.SubprocessError) as error:
            self.skipTest("cannot run as an ordinary user: %s" % error)
        self.assertEqual((code, err), (DONE, ""))
        self.assertIn("1 run in 1 group", out)
        code, out, err = run("history", kept, "import", report, prepare=ordinary)
        self.assertEqual(code, FAILED)
        self.assertIn("read-only", err)

    def test_killed_writers_lose_nothing(self):
        sys.path.insert(0, os.path.join(command_case.SOURCE, "tests", "by_hand"))
        import history_kill
        history_kill.kill_writers(command_case.PRONY, 30)


if __name__ == "__main__":
    command_case.main()
