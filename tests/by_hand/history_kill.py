#!/usr/bin/env python3
"""Kills writers of a history with SIGKILL again and again: history_kill.py PRONY [ROUNDS]. Two writers import reports into
one file at once; one is killed at a random moment. Every run that a writer called stored must be there, the database must
be intact, and no run may be half there."""
import json
import os
import random
import sqlite3
import subprocess
import sys
import tempfile
import time


def make_reports(prony, folder, count):
    """Reports of one measurement, a second apart, so that each is a run of its own."""
    path = os.path.join(folder, "measured.json")
    subprocess.run([prony, "profile", "-q", "-r", "3", "--json", path], check=True)
    with open(path, encoding="utf-8") as file:
        report = json.load(file)
    names = []
    for i in range(count):
        report["created"] = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(1_700_000_000 + i))
        names.append(os.path.join(folder, f"r{i:04d}.json"))
        with open(names[-1], "w", encoding="utf-8") as file:
            json.dump(report, file)
    return names


def start(prony, database, names):
    return subprocess.Popen([prony, "history", database, "import", *names], stdout=subprocess.PIPE, text=True)


def stored_times(said):
    """The index of a report follows from its name."""
    lines = [line for line in said.splitlines() if line.endswith("known already")]
    return {1_700_000_000 + int(os.path.basename(line.split(":")[0])[1:5]) for line in lines}


def kill_writers(prony, rounds, seed=0):
    """Rounds of two writers, of which one is killed; returns how many were killed while they wrote. Raises
    AssertionError."""
    draw = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        names = make_reports(prony, folder, 80)
        database = os.path.join(folder, "runs.db")
        promised, values, killed = set(), None, 0
        for number in range(rounds):
            chosen = draw.sample(names, 16)
            first, second = start(prony, database, chosen[:8]), start(prony, database, chosen[8:])
            time.sleep(draw.uniform(0, 0.06))
            first.kill()
            promised |= stored_times(first.communicate()[0])
            killed += first.returncode < 0
            said = second.communicate()[0]
            assert second.returncode == 0, f"round {number}: the other writer failed with {second.returncode}"
            promised |= stored_times(said)
            with sqlite3.connect(database) as connection:
                assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)], f"round {number}: damaged"
                there = {row[0] for row in connection.execute("SELECT time FROM runs")}
                assert promised <= there, f"round {number}: lost {sorted(promised - there)}"
                counts = {row[0] for row in connection.execute(
                    "SELECT count(run) FROM runs LEFT JOIN run_values ON run = id GROUP BY id")}
                values = values or counts
                assert counts == values and len(counts) == 1, f"round {number}: a run has {counts} values"
                if number % 10 == 9:
                    connection.execute("PRAGMA foreign_keys = ON")
                    connection.execute("DELETE FROM runs")
                    promised = set()
            connection.close()
        return killed


if __name__ == "__main__":
    ROUNDS = int(sys.argv[2]) if len(sys.argv) > 2 else 500
    KILLED = kill_writers(os.path.abspath(sys.argv[1]), ROUNDS)
    print(f"{ROUNDS} rounds, {KILLED} writers killed before their end: nothing committed was lost, nothing was damaged")
