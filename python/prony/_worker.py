"""One process of a study, started by prony.scale. It reads a task from stdin, measures the latency without time stamps, then the
operators with time stamps, and writes both to stdout."""

import json
import sys

from . import _prony
from .errors import Error
from .profiling import profile_sessions
from .report import Report
from .session import Model, Session

_MOST_RUNS, _TRACED_RUNS, _FEWEST_TRACED = 5000, 20, 3


def _measure(model: Model, order: dict, traced: bool) -> Report:  # type: ignore[type-arg]
    task = order["task"]
    with Session(model, threads=task["threads"] or "auto", inter_op=task["inter_op"], batch=task["batch"] or None, profiled=traced,
                 **order["options"]) as session:
        if traced:
            seconds = task["seconds"] / 5 if task["seconds"] > 0 else 0.0
            return profile_sessions([session], warmup=_FEWEST_TRACED, runs=_TRACED_RUNS, seconds=seconds, trace_threads=True,
                                    measure_cost=False)[0]
        return profile_sessions([session], warmup=task["warmup"], runs=task["runs"] or _MOST_RUNS, seconds=task["seconds"],
                                trace_threads=False, measure_cost=False)[0]


def main() -> int:
    order = json.load(sys.stdin)
    try:
        model = Model(order["model"])
        latency = _measure(model, order, traced=False)
        operators = _measure(model, order, traced=True)
        sys.stdout.write(_prony.study_sample(latency, operators))
    except Error as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
