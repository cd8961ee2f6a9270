"""The life of a job on a model cluster, through the real loop."""

from __future__ import annotations

import pytest

from paddlejob.api.types import Phase
from paddlejob.engine.backend import Rejected
from paddlejob.plan import Create, Kind, PodGroup, PodPhase, RecordEvent, Wake, names
from tests.support.builders import document, job, template
from tests.support.model import Model


async def running(**options: object) -> Model:
    model = Model(job(**options))
    await model.settle()
    assert model.status.phase is Phase.RUNNING, model.status
    return model


async def test_a_job_runs_once_every_pod_waits_at_the_start_barrier():
    model = Model(job(ps=2, workers=2))
    await model.step()
    assert [*model.pods] == ["mnist-ps-0", "mnist-ps-1", "mnist-worker-0", "mnist-worker-1"], "servers first"
    model.tick()
    model.change("mnist-worker-1", phase=PodPhase.PENDING)
    await model.step()
    assert not model.environments, "one pod still pulls its image"
    model.change("mnist-worker-1", phase=PodPhase.WAITING)
    await model.step()
    assert model.status.publishedAttempt == 1
    assert len([action for action in model.done if isinstance(action, Wake)]) == 4
    await model.settle()
    assert model.status.phase is Phase.RUNNING
    assert model.status.ps and model.status.ps.ready == "2/2"


async def test_a_job_completes_when_its_workers_have_and_servers_are_removed():
    model = await running(ps=2, workers=2)
    model.end("mnist-worker-0", 0)
    await model.settle()
    assert model.status.phase is Phase.RUNNING
    model.end("mnist-worker-1", 0)
    await model.settle()
    assert model.status.phase is Phase.COMPLETED
    assert not model.pods, "OnCompletion is what the planner takes where cleanPodPolicy is absent"
    assert model.status.condition("Completed").status == "True"


@pytest.mark.parametrize(
    ("policy", "after_success", "after_failure"),
    [("Always", 0, 0), ("Never", 2, 2), ("OnFailure", 2, 0), ("OnCompletion", 0, 2), ("OnFailed", 2, 0)],
)
async def test_clean_pod_policy(policy: str, after_success: int, after_failure: int):
    for code, left in ((0, after_success), (1, after_failure)):
        model = await running(cleanPodPolicy=policy, backoffLimit=0)
        model.end("mnist-worker-0", code)
        model.end("mnist-worker-1", 0)
        await model.settle()
        assert len(model.pods) == left, (policy, code)
        assert all(pod.ended for pod in model.pods.values()), "nothing runs on"


async def test_a_failure_rebuilds_the_whole_job_and_counts_once():
    model = await running(ps=1, workers=2)
    old = {pod.uid for pod in model.pods.values()}
    model.end("mnist-worker-1", 1, message="ValueError: bad batch")
    await model.settle()
    assert model.status.phase is Phase.RUNNING
    assert (model.status.restarts, model.status.disruptions, model.status.attempt) == (1, 0, 2)
    assert not old & {pod.uid for pod in model.pods.values()}, "every pod is new"
    assert [*model.environments] == [2], "and so is their environment"
    event = next(event for event in model.events if event.reason == "ProgramFailed")
    assert "restart 1 of 3" in event.message
    assert "ValueError: bad batch" in event.message


async def test_the_last_failure_ends_the_job_and_says_why():
    model = await running(backoffLimit=1)
    for _ in range(2):
        model.end("mnist-worker-1", 1, message="line one\nValueError: bad batch")
        await model.settle()
    assert model.status.phase is Phase.FAILED
    assert model.status.reason == "BackoffLimitExceeded"
    assert model.status.headline.startswith("ValueError: bad batch (worker 1, exit status 1); ")
    assert "ValueError: bad batch" in model.status.message
    assert model.status.restarts == 1


async def test_a_server_that_exits_with_0_before_the_workers_is_a_failure():
    model = await running(ps=1, workers=1)
    model.end("mnist-ps-0", 0)
    await model.settle()
    assert (model.status.phase, model.status.restarts) == ("Running", 1)


async def test_out_of_memory_says_what_to_raise():
    model = await running(backoffLimit=0)
    model.end("mnist-worker-0", 137, reason="OOMKilled")
    await model.settle()
    assert "resources.limits.memory" in model.status.message


async def test_the_pod_that_failed_first_is_named_not_its_echo():
    model = await running(backoffLimit=0, workers=3)
    model.end("mnist-worker-0", 250, message="peer failure")
    model.end("mnist-worker-2", 1, message="IndexError: 7")
    await model.settle()
    assert model.status.message.startswith("IndexError: 7 (worker 2, exit status 1); ")


@pytest.mark.parametrize("reason", ["Evicted", "Preempted", "NodeLost"])
async def test_a_disruption_does_not_count_against_the_backoff_limit(reason: str):
    model = await running(backoffLimit=0)
    model.change("mnist-worker-0", phase=PodPhase.FAILED, disrupted=True, reason=reason, message="disk pressure")
    model.end("mnist-worker-1", 250)
    await model.settle()
    assert (model.status.phase, model.status.restarts, model.status.disruptions) == ("Running", 0, 1)


async def test_a_node_that_was_tainted_is_not_reported_as_lost_for_certain():
    model = await running()
    model.change("mnist-worker-0", deletion_due=model.now + 5, disrupted=True, reason="NodeLost", message="NoExecute")
    await model.settle()
    messages = [action.message for action in model.events if "was lost" in action.message]
    assert messages
    assert all("or has a taint that pod mnist-worker-0 does not tolerate: NoExecute" in one for one in messages)


async def test_a_pod_deleted_by_someone_is_a_disruption():
    model = await running()
    del model.pods["mnist-worker-0"]
    await model.settle()
    assert (model.status.phase, model.status.restarts, model.status.disruptions) == ("Running", 0, 1)


async def test_a_pod_deleted_before_the_start_is_simply_made_again():
    model = Model(job())
    await model.step()
    model.tick()
    del model.pods["mnist-worker-0"]
    await model.settle()
    assert (model.status.phase, model.status.attempt, model.status.disruptions) == ("Running", 1, 0)


async def test_a_worker_that_has_succeeded_needs_no_pod():
    model = await running()
    model.end("mnist-worker-0", 0)
    await model.settle()
    assert model.status.worker.finished == "0"
    del model.pods["mnist-worker-0"]
    await model.settle()
    assert (model.status.phase, model.status.disruptions) == ("Running", 0)
    model.end("mnist-worker-1", 0)
    await model.settle()
    assert model.status.phase is Phase.COMPLETED


async def test_suspend_removes_the_pods_and_resume_starts_again_without_counting():
    model = await running()
    model.job = model.job.model_copy(update={"spec": model.job.spec.model_copy(update={"suspend": True})})
    await model.settle()
    assert (model.status.phase, len(model.pods)) == ("Suspended", 0)
    model.job = model.job.model_copy(update={"spec": model.job.spec.model_copy(update={"suspend": False})})
    await model.settle()
    assert (model.status.phase, model.status.restarts, model.status.disruptions) == ("Running", 0, 0)


async def test_a_job_created_suspended_waits_and_then_runs():
    model = Model(job(suspend=True))
    await model.settle()
    assert (model.status.phase, len(model.pods)) == ("Suspended", 0)
    model.job = job(status=model.status.model_dump())
    await model.settle()
    assert model.status.phase is Phase.RUNNING


async def test_scaling_rebuilds_with_the_new_number_and_counts_as_no_restart():
    model = await running(elastic=1)
    model.edit(workers=3, elastic=1)
    await model.settle()
    assert (model.status.phase, len(model.pods)) == ("Running", 3)
    assert (model.status.restarts, model.status.disruptions) == (0, 0)
    assert model.environments[model.status.attempt]["PADDLE_TRAINERS_NUM"] == "3"
    model.edit(workers=1, elastic=1)
    await model.settle()
    assert [*model.pods] == ["mnist-worker-0"]


async def test_the_launcher_in_a_job_with_servers_is_an_event_with_the_remedy():
    launched = {"template": template(command=["python", "-m", "paddle.distributed.launch", "train.py"])}
    model = await running(ps=1, worker_=launched)
    event = next(event for event in model.events if event.reason == "LauncherWithServers")
    assert "spec.worker" in event.message
    assert "run the program directly" in event.message


async def test_devices_that_a_program_would_not_use_are_an_event_with_the_remedy():
    several = {"template": template(command=["python", "train.py"], resources={"limits": {"nvidia.com/gpu": 8}})}
    model = await running(worker_=several)
    (event,) = [event for event in model.events if event.reason == "DevicesNotUsed"]
    assert event.message.startswith("spec.worker.template.spec.containers[0].command")
    assert "start one for each: python -m paddle.distributed.launch train.py" in event.message


async def test_a_rejected_pod_stops_the_rest_and_the_job_shows_the_reason():
    model = Model(job(workers=8))
    model.rejects["mnist-worker-0"] = Rejected("Forbidden", "exceeded quota: pods, used 10, limited 10")
    await model.step()
    assert not model.pods, "the first goes alone"
    await model.step()
    assert model.status.reason == "QuotaExceeded"
    assert "quota" in model.status.message
    creates = sum(isinstance(action, Create) for action in model.done)
    await model.step()
    assert sum(isinstance(action, Create) for action in model.done) == creates, "not at once again"
    model.rejects.clear()
    await model.settle()
    assert model.status.phase is Phase.RUNNING


async def test_the_users_pod_group_is_used_and_waited_for():
    gang = job(worker_={"template": template() | {"spec": {**template()["spec"], "schedulerName": "volcano"}}}, ps=2)
    model = Model(gang)
    await model.step()
    assert not model.pods
    assert model.status.reason == "WaitingForPodGroup"
    model.groups["mnist"] = PodGroup("mnist", "theirs", owned=False, phase="Running")
    await model.settle()
    for name, manifest in model.manifests.items():
        if name in model.pods:
            assert manifest["spec"]["schedulerName"] == "volcano", "on all roles"
            assert manifest["metadata"]["annotations"]["scheduling.k8s.io/group-name"] == "mnist"
    assert model.status.phase is Phase.RUNNING


async def test_without_a_users_pod_group_one_is_made_before_any_pod_and_removed_at_the_end():
    model = Model(job(schedulingPolicy={"minAvailable": 2, "queue": "research"}))
    await model.settle()
    kinds = [action.kind for action in model.done if isinstance(action, Create)]
    assert kinds[0] is Kind.POD_GROUP
    assert model.manifests["mnist-uid-o"]["spec"] == {"minMember": 2, "queue": "research"}
    for index in range(2):
        model.end(f"mnist-worker-{index}", 0)
    await model.settle()
    assert not model.groups


async def test_a_job_too_large_for_its_environment_fails_before_any_pod():
    model = Model(job(workers=9000))
    await model.step()
    assert model.status.reason == "EnvironmentTooLarge"
    assert not model.pods


async def test_the_finalizer_of_paddle_operator_is_removed_on_sight():
    made = job()
    left = made.metadata.model_copy(
        update={"finalizers": ("finalizers.paddlepaddle.org",), "deletionTimestamp": "2027-01-15T08:00:00Z"}
    )
    model = Model(made.model_copy(update={"metadata": left}))
    await model.step()
    assert model.job.metadata.finalizers == ()
    assert not model.pods


async def test_a_users_own_variable_wins_and_is_reported():
    mine = template(env=[{"name": "PADDLE_PORT", "value": "9999"}])
    model = await running(worker_={"template": mine})
    env = model.manifests["mnist-worker-0"]["spec"]["containers"][0]["env"]
    assert [one["value"] for one in env if one["name"] == "PADDLE_PORT"] == ["9999"]
    assert any("PADDLE_PORT" in event.message for event in model.events if isinstance(event, RecordEvent))


def test_the_builder_makes_a_valid_file():
    from paddlejob.api.validate import faults

    assert faults(document(ps=2, heter=1)) == []


def test_the_environment_of_an_earlier_job_of_the_same_name_is_not_read():
    previous = names.environment_of("mnist", "b7f30", 1)
    assert previous != names.environment(job(), 1)


async def test_a_job_that_has_succeeded_is_not_suspended():
    model = await running(workers=1)
    model.end("mnist-worker-0", 0)
    model.edit(workers=1, suspend=True)
    await model.settle()
    assert model.status.phase is Phase.COMPLETED


async def test_other_defaults_of_a_newer_crd_rebuild_nothing():
    model = await running()
    with_default = document()
    for role in with_default["spec"].values():
        role["template"]["spec"]["dnsPolicy"] = "ClusterFirst"
    model.job = model.job.model_copy(update={"spec": type(model.job.spec).model_validate(with_default["spec"])})
    await model.settle()
    assert model.status.attempt == 1
    model.edit(workers=2, suspend=True, worker_={"template": template(image="newer")})
    model.edit(workers=2, worker_={"template": template(image="newer")})
    await model.settle()
    assert model.status.attempt == 2, "while a change by the user does"


async def test_a_host_name_in_the_template_of_a_job_by_service_is_replaced_and_that_is_said():
    template = {"metadata": {}, "spec": {"hostname": "mine", "containers": [{"name": "paddle", "image": "i"}]}}
    model = Model(job(intranet="Service", worker_={"template": template}))
    await model.settle()
    assert [one.message for one in model.events if one.reason == "HostNameOverridden"] == [
        "the template sets worker: hostname; with intranet: Service pods are found by their own names"
    ]
    assert model.manifests["mnist-worker-0"]["spec"]["hostname"] == "worker-0-uid-o-1"


@pytest.mark.parametrize("end", ["complete", "suspend"])
async def test_the_service_of_a_job_goes_when_the_job_ends_or_is_suspended(end: str):
    model = await running(intranet="Service")
    assert model.services == {"mnist-peers"}
    if end == "suspend":
        model.edit(intranet="Service", suspend=True)
    else:
        for index in range(2):
            model.end(f"mnist-worker-{index}", 0)
    await model.settle()
    assert model.services == set()


async def test_a_gang_that_was_scaled_gets_a_group_of_its_new_size():
    model = await running(workers=4, elastic=1, schedulingPolicy={})
    assert model.groups["mnist-uid-o"].members == 4
    model.edit(workers=2, elastic=1, schedulingPolicy={})
    await model.settle()
    assert (model.status.phase, model.groups["mnist-uid-o"].members) == (Phase.RUNNING, 2)


async def test_a_gang_that_trains_does_without_its_group():
    model = await running(schedulingPolicy={})
    model.groups.clear()
    model.gang_scheduler = False
    await model.settle()
    assert (model.status.phase, model.status.reason) == (Phase.RUNNING, "Running")


async def test_a_job_that_another_operator_had_started_is_started_again():
    model = Model(job(status={"phase": "Running"}))
    await model.settle()
    assert (model.status.phase, model.status.attempt) == (Phase.RUNNING, 1)


async def test_a_stored_job_without_workers_fails_with_a_message():
    whole = job(ps=1)
    model = Model(whole.model_copy(update={"spec": whole.spec.model_copy(update={"worker": None})}))
    await model.settle()
    assert (model.status.phase, model.status.reason) == (Phase.FAILED, "InvalidSpec")


async def test_pods_of_a_job_that_was_suspended_before_its_first_status_are_not_mistaken_for_a_success():
    model = Model(job(workers=1))
    await model.step()
    model.tick()
    model.change("mnist-worker-0", phase=PodPhase.SUCCEEDED)
    model.edit(workers=1, suspend=True)
    await model.step()
    await model.step()
    assert (model.status.phase, model.status.attempt) == (Phase.SUSPENDED, 2)
