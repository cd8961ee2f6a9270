"""What a program printed when it failed: the headline of its job, and whether another attempt is made."""

from __future__ import annotations

from typing import Any

import pytest

from paddlejob.api.types import Phase, Progress
from paddlejob.plan import PodPhase
from tests.support.builders import job, template
from tests.support.model import Model

TRACEBACK = 'Traceback (most recent call last):\n  File "/app/train.py", line 3, in <module>\n    main()\n'
LAUNCHER = "LAUNCH INFO 2026-11-18 05:00:00,123 Pod failed\nLAUNCH ERROR 2026-11-18 05:00:00,123 Container failed !!!\n"
PADDLE = "----------------------\nError Message Summary:\n----------------------\n"
HEADLINES = {
    TRACEBACK + "ModuleNotFoundError: No module named 'x'": "ModuleNotFoundError: No module named 'x'",
    TRACEBACK + "AssertionError\n": "AssertionError",
    TRACEBACK + "yaml.scanner.ScannerError: mapping values\n  in line 3": "yaml.scanner.ScannerError: mapping values",
    LAUNCHER + TRACEBACK + "KeyError: 'lr'\nLAUNCH INFO 2026-11-18 05:00:01,123 Exit code 1": "KeyError: 'lr'",
    PADDLE + "ResourceExhaustedError: \n\nOut of memory error on GPU 0.\n  [Hint: x] (at y.cc:86)": (
        "ResourceExhaustedError: Out of memory error on GPU 0."
    ),
    "usage: train.py [-h]\ntrain.py: error: unrecognized arguments: --epoch 3": (
        "train.py: error: unrecognized arguments: --epoch 3"
    ),
    "Usage: train\n\nError: No such option: --epoch": "Error: No such option: --epoch",
    "python: can't open file '/app/trian.py': [Errno 2] No such file or directory": (
        "python: can't open file '/app/trian.py': [Errno 2] No such file or directory"
    ),
    "/usr/bin/python3: No module named trian": "/usr/bin/python3: No module named trian",
    "ValueError: first\nDuring handling of it:\n\x1b[31mTypeError: second\x1b[0m": "TypeError: second",
    "ValueError: bad\nsubprocess.CalledProcessError: Command 'a' returned non-zero exit status 1.": "ValueError: bad",
    "loss: 0.4, error: none yet\nepoch 3 failed": "",
    "I1118 05:00:00 server.cc:3] Error rate 0.4": "",
    "": "",
}
AT_ONCE = [
    "SyntaxError: invalid syntax",
    "IndentationError: unexpected indent",
    "ModuleNotFoundError: No module named 'x'",
    "ImportError: cannot import name 'fluid' from 'paddle'",
    "python: can't open file '/app/trian.py': [Errno 2] No such file or directory",
    "/usr/bin/python: No module named trian",
    "/usr/bin/python: Error while finding module specification for 'a.b' (ModuleNotFoundError: No module named 'a')",
    "train.py: error: unrecognized arguments: --epoch 3",
    "train.py: error: the following arguments are required: --data",
]
PASSES = [
    "ConnectionRefusedError: [Errno 111] Connection refused",
    "RuntimeError: [gloo/transport/tcp/pair.cc:598] Connection closed by peer [10.1.0.3]:35000",
    "RuntimeError: (External) NCCL error(2), unhandled system error.",
    "TimeoutError: The TCPStore was not ready in 900 s",
    "OSError: [Errno 98] Address already in use",
    "OSError: [Errno 28] No space left on device",
    "urllib.error.HTTPError: HTTP Error 503: Service Unavailable",
    "socket.gaierror: [Errno -3] Temporary failure in name resolution",
    "OSError: (External) CUDA error(802), system not yet initialized.",
    "KeyboardInterrupt",
    "WARNING: curves are not drawn: No module named 'visualdl'",
    "some line that says nothing",
    "",
]

MOUNTED = {"volumeMounts": [{"name": "data", "mountPath": "/data", "readOnly": True}]}
FILLED: dict[str, dict[str, Any]] = {
    "a volume": template(**MOUNTED),
    "a sidecar": template(),
    "a sidecar among the init containers": template(),
}
FILLED["a volume"]["spec"]["volumes"] = [{"name": "data", "nfs": {"server": "files", "path": "/"}}]
FILLED["a sidecar"]["spec"]["containers"].append({"name": "fetch", "image": "fetch"})
FILLED["a sidecar among the init containers"]["spec"]["initContainers"] = [
    {"name": "fetch", "image": "fetch", "restartPolicy": "Always"}
]


async def failing(*messages: str, code: int = 1, trains: float = 0.0, **options: Any) -> Model:
    """A job whose worker 0 ends its first attempts with these lines."""
    model = Model(job(**options))
    for message in messages:
        await model.settle()
        if model.status.phase is not Phase.RUNNING:
            break
        model.now += trains
        model.end("mnist-worker-0", code, message=message)
    await model.settle()
    return model


def ended(model: Model) -> tuple[str, str, int]:
    return str(model.status.phase), model.status.reason, model.status.restarts


FAILED_AT_ONCE, FAILED_TWICE = ("Failed", "ProgramFailed", 0), ("Failed", "ProgramFailed", 1)
EXHAUSTED = ("Failed", "BackoffLimitExceeded", 3)


@pytest.mark.parametrize(("output", "headline"), HEADLINES.items(), ids=lambda text: text.strip()[-40:])
async def test_the_last_error_that_a_program_printed_is_the_headline(output: str, headline: str):
    model = await failing(output, backoffLimit=0)
    expected = f"{headline} (worker 0, exit status 1); " if headline else "mnist-worker-0 failed with exit status 1; "
    assert model.status.headline.startswith(expected)
    assert model.status.output == output.strip()


async def test_what_fails_a_job_at_once_is_the_headline_however_much_a_launcher_prints_after_it():
    model = await failing("ModuleNotFoundError: No module named 'x'\n" + LAUNCHER * 12)
    assert ended(model) == FAILED_AT_ONCE
    assert model.status.headline.startswith("ModuleNotFoundError: No module named 'x' (worker 0, exit status 1); ")


@pytest.mark.parametrize("code", [137, 139, 143])
async def test_a_program_that_was_killed_says_so_whatever_it_printed_before(code: int):
    model = await failing("ValueError: skipped a bad record", code=code)
    assert model.events[-1].message.startswith(f"mnist-worker-0 failed with exit status {code}; ")


async def test_the_programs_own_error_is_named_and_not_the_lost_connection_of_a_peer():
    model = Model(job(backoffLimit=0))
    await model.settle()
    model.end("mnist-worker-0", 1, message="RuntimeError: Connection closed by peer")
    model.end("mnist-worker-1", 1, message="KeyError: 'lr'")
    await model.settle()
    assert model.status.headline.startswith("KeyError: 'lr' (worker 1, exit status 1); ")


@pytest.mark.parametrize("line", AT_ONCE)
async def test_an_error_that_every_attempt_ends_with_fails_the_job_at_once(line: str):
    model = await failing(line)
    assert ended(model) == FAILED_AT_ONCE
    assert "another attempt would end in the same way" in model.status.headline


async def test_a_missing_file_fails_the_job_at_once_unless_another_pod_may_yet_write_it():
    line = "FileNotFoundError: [Errno 2] No such file or directory: 'train.csv'"
    assert ended(await failing(line, workers=1)) == FAILED_AT_ONCE
    assert ended(await failing(line, line, workers=2)) == FAILED_TWICE


@pytest.mark.parametrize("filled", FILLED.values(), ids=FILLED)
async def test_nor_where_something_else_fills_a_volume_or_a_sidecar_fetches_it(filled: dict[str, Any]):
    line = "FileNotFoundError: [Errno 2] No such file or directory: '/data/train.csv'"
    assert ended(await failing(line, line, workers=1, worker_={"template": filled})) == FAILED_TWICE


async def test_a_job_that_has_trained_is_restarted_even_if_a_module_is_missing_then():
    assert (await failing("ModuleNotFoundError: No module named 'x'", trains=61)).status.restarts == 1


async def test_the_same_error_twice_before_any_progress_fails_the_job():
    model = await failing(*["ValueError: no such column"] * 2)
    assert ended(model) == FAILED_TWICE
    assert model.status.headline == (
        "ValueError: no such column (worker 0, exit status 1); see its log; two attempts in a row ended so before any "
        "progress: another attempt would end in the same way"
    )


async def test_the_first_restart_after_such_an_error_says_how_to_go_without():
    model = await failing("ValueError: no such column")
    assert model.events[-1].message.splitlines()[0] == (
        "ValueError: no such column (worker 0, exit status 1); see its log; restart 1 of 3 in 2 s, the last one if it "
        "ends with this error again (backoffLimit: 0 or pdj run --no-restart fails at once)"
    )


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("ValueError: 10:00:01 bad row", "ValueError: 10:00:09 bad row"),
        ("ValueError: 2026-11-18 10:00:01,250 bad row", "ValueError: 2026-11-19 11:00:01,3 bad row"),
        ("ValueError: pid 41: bad row", "ValueError: pid 77: bad row"),
        ("TypeError: <Net object at 0x7f00aa>", "TypeError: <Net object at 0x7f00bb>"),
        ("OSError: cannot read /tmp/tmpa1b2/x", "OSError: cannot read /tmp/tmpc3d4/x"),
        ("ValueError: 10.1.0.3:35000 is no name", "ValueError: 10.1.0.9:41000 is no name"),
    ],
)
async def test_times_addresses_and_process_numbers_make_no_difference(first: str, second: str):
    assert ended(await failing(first, second)) == FAILED_TWICE


async def test_another_error_begins_anew():
    lines = ["ValueError: column 3", "ValueError: column 4", "ValueError: column 3", "ValueError: column 4"]
    assert ended(await failing(*lines)) == EXHAUSTED


@pytest.mark.parametrize("line", PASSES, ids=lambda line: line[:30])
async def test_what_a_peer_a_network_or_a_device_may_cause_is_tried_up_to_the_limit(line: str):
    assert ended(await failing(*[line] * 4)) == EXHAUSTED


@pytest.mark.parametrize("code", [134, 137, 139, 143, 241, 247, 250])
async def test_what_ended_by_a_signal_or_after_a_peer_is_tried_up_to_the_limit(code: int):
    assert ended(await failing(*["ValueError: no such column"] * 4, code=code)) == EXHAUSTED


async def test_an_attempt_that_trained_for_a_minute_does_not_count():
    assert ended(await failing(*["ValueError: no such column"] * 4, trains=61)) == EXHAUSTED


async def test_a_job_that_has_ever_reached_a_step_has_all_its_restarts():
    model = Model(job())
    await model.settle()
    progress = Progress(highestStep=10, stepAtStart=10)
    model.job = model.job.model_copy(update={"status": model.status.model_copy(update={"progress": progress})})
    for _ in range(3):
        model.end("mnist-worker-0", 1, message="ValueError: no such column")
        await model.settle()
    assert (model.status.phase, model.status.restarts) == (Phase.RUNNING, 3)


async def test_a_disruption_in_between_begins_anew():
    model = await failing("ValueError: no such column")
    model.change("mnist-worker-0", phase=PodPhase.FAILED, disrupted=True, reason="Evicted")
    await model.settle()
    assert (model.status.disruptions, model.status.earlyError) == (1, "")
    model.end("mnist-worker-0", 1, message="ValueError: no such column")
    await model.settle()
    assert (model.status.phase, model.status.restarts) == (Phase.RUNNING, 2)


@pytest.mark.parametrize("line", ["SyntaxError: invalid syntax", "ValueError: no such column"])
async def test_a_rule_that_restarts_wins(line: str):
    rules = {"rules": [{"action": "Restart", "onReasons": ["ProgramFailed"]}]}
    assert ended(await failing(*[line] * 4, failurePolicy=rules)) == EXHAUSTED


@pytest.mark.parametrize("limit", [0, 1])
async def test_a_limit_that_is_reached_is_the_reason(limit: int):
    model = await failing(*["ValueError: no such column"] * 2, backoffLimit=limit)
    assert ended(model) == ("Failed", "BackoffLimitExceeded", limit)


async def test_a_job_of_one_pod_never_blames_its_node():
    model = await failing(*["Segmentation fault"] * 3, code=139, workers=1)
    assert (model.status.restarts, model.status.suspectNodes, model.status.avoidedNodes) == (3, (), ())


async def test_a_live_worker_whose_module_is_missing_fails_the_job_at_once():
    model = Model(job(ps=1, workers=2, elastic=1, withGloo=0))
    await model.settle()
    model.end("mnist-worker-1", 1, message="ModuleNotFoundError: No module named 'x'")
    await model.settle()
    assert ended(model) == FAILED_AT_ONCE
