"""The life of a job on a model cluster, through the real loop."""

from __future__ import annotations

import pytest

from paddlejob.api.types import Phase, Role
from paddlejob.engine.backend import Rejected
from paddlejob.plan import Create, Delete, Kind, PodGroup, PodPhase, RecordEvent, Stop, Wake, names
from paddlejob.plan.objects.pod import pod_manifest
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


async def test_servers_run_on_after_completion_where_the_policy_is_never():
    model = await running(ps=2, workers=2, cleanPodPolicy="Never")
    for index in range(2):
        model.end(f"mnist-worker-{index}", 0)
    await model.settle()
    assert (model.status.phase, model.status.ps.ready, model.status.worker.ready) == ("Completed", "2/2", "0/2")


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
    assert "mnist-worker-1" in model.status.message.splitlines()[0]
    assert "ValueError: bad batch" in model.status.message
    assert model.status.restarts == 1


async def test_restarts_come_at_growing_distance():
    model = await running(backoffLimit=4)
    waits = []
    for _ in range(4):
        before = model.now
        model.end("mnist-worker-0", 1)
        await model.settle()
        waits.append(model.now - before)
    assert waits == sorted(waits)
    assert waits[-1] > 12


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
    assert "mnist-worker-2" in model.status.message


@pytest.mark.parametrize("reason", ["Evicted", "Preempted", "NodeLost"])
async def test_a_disruption_does_not_count_against_the_backoff_limit(reason: str):
    model = await running(backoffLimit=0)
    model.change("mnist-worker-0", phase=PodPhase.FAILED, disrupted=True, reason=reason, message="disk pressure")
    model.end("mnist-worker-1", 250)
    await model.settle()
    assert (model.status.phase, model.status.restarts, model.status.disruptions) == ("Running", 0, 1)


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


async def test_the_start_barrier_holds_while_a_pod_is_about_to_be_evicted():
    model = Model(job())
    await model.step()
    model.tick()
    model.change("mnist-worker-0", disrupted=True, reason="Preempted")
    await model.step()
    assert not model.environments
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


async def test_a_pod_on_a_lost_node_is_removed_by_force_when_its_time_is_over():
    model = await running()
    model.kubelet_runs = False
    model.change("mnist-worker-0", deletion_due=model.now + 5, disrupted=True, reason="NodeLost")
    model.pods.pop("mnist-worker-1")
    await model.step()
    assert model.status.disruptions == 1
    model.now += 34
    await model.step()
    assert "mnist-worker-0" in model.pods
    model.now += 2
    await model.step()
    assert any(isinstance(one, Delete) and one.force for one in model.done)
    await model.settle()
    assert model.status.phase is Phase.RUNNING


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


async def test_the_deadline_ends_the_job():
    model = await running(activeDeadlineSeconds=1000)
    model.now += 1001
    await model.settle()
    assert (model.status.phase, model.status.reason) == ("Failed", "DeadlineExceeded")
    assert all(pod.ended for pod in model.pods.values())


async def test_the_job_goes_when_its_time_to_live_is_over():
    model = await running(ttlSecondsAfterFinished=60)
    for index in range(2):
        model.end(f"mnist-worker-{index}", 0)
    await model.settle()
    assert model.status.phase is Phase.COMPLETED
    model.now += 61
    await model.step()
    assert model.job is None


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


async def test_half_placed_pods_are_released_after_a_while():
    model = Model(job())
    await model.step()
    model.change("mnist-worker-0", address="10.0.0.1", node="node-1", phase=PodPhase.WAITING)
    model.change("mnist-worker-1", reason="Unschedulable", message="0/1 nodes are available: 1 Insufficient cpu.")
    await model.step()
    assert model.status.reason == "Unschedulable"
    assert "Insufficient cpu" in model.status.message
    model.now += 95
    await model.step()
    assert model.status.reason == "HalfPlaced"
    assert all(pod.deleting for pod in model.pods.values())
    assert (model.status.restarts, model.status.disruptions) == (0, 0)
    await model.settle()
    assert model.status.phase is Phase.RUNNING


async def test_of_several_pods_that_fit_nowhere_the_one_that_says_why_is_quoted():
    model = Model(job())
    await model.step()
    model.change("mnist-worker-0", reason="Unschedulable", message="waiting for minCount pods")
    model.change("mnist-worker-1", reason="Unschedulable", message="0/1 nodes are available: 1 Insufficient cpu.")
    await model.step()
    assert "Insufficient cpu. (mnist-worker-1)" in model.status.message


async def test_a_missing_claim_is_named():
    model = Model(job())
    await model.step()
    for name in model.pods:
        model.change(name, reason="Unschedulable", message='persistentvolumeclaim "nfs-pvc" not found')
    await model.step()
    assert model.status.reason == "VolumeMissing"
    assert "claim nfs-pvc does not exist" in model.status.message


async def test_an_image_that_cannot_be_pulled_is_reported():
    model = Model(job())
    await model.step()
    model.change("mnist-worker-0", reason="ImagePullBackOff", message='Back-off pulling image "nope:v1"')
    await model.step()
    assert model.status.reason == "ImagePullFailed"
    assert any(event.reason == "ImagePullFailed" for event in model.events)


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


async def test_volcano_requested_but_not_installed_is_reported():
    model = Model(job(schedulingPolicy={}))
    model.gang_scheduler = False
    await model.step()
    assert model.status.reason == "VolcanoMissing"
    assert not model.pods


async def test_a_job_too_large_for_its_environment_fails_before_any_pod():
    model = Model(job(workers=9000))
    await model.step()
    assert model.status.reason == "EnvironmentTooLarge"
    assert not model.pods


async def test_a_waiting_pod_is_woken_again_after_three_seconds_and_then_left_alone():
    model = Model(job(workers=1))
    await model.step()
    model.tick()
    await model.step()
    for _ in range(5):
        model.now += 3.1
        await model.step()
    assert [action.times for action in model.done if isinstance(action, Wake)] == [1, 2]


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


async def test_a_half_created_job_gives_its_part_of_the_quota_back_for_a_while():
    model = Model(job(workers=2))
    model.rejects["mnist-worker-1"] = Rejected("Forbidden", "exceeded quota: pods")
    await model.step()
    await model.step()
    assert (model.status.reason, [*model.pods]) == ("QuotaExceeded", ["mnist-worker-0"])
    model.now += 100
    await model.step()
    assert (model.status.reason, model.status.attempt) == ("HalfCreated", 2)
    assert "raise the quota" in model.status.message
    model.tick()
    assert not model.pods
    model.rejects.clear()
    await model.settle()
    assert (model.status.phase, model.status.restarts, model.status.disruptions) == (Phase.RUNNING, 0, 0)


async def test_a_rejected_environment_is_reported_and_retried_less_and_less_often():
    model = Model(job())
    name = names.environment(model.job, 1)
    model.rejects[name] = Rejected("Forbidden", "exceeded quota: configmaps")
    await model.step()
    model.tick()
    for _ in range(50):
        await model.step()
        model.now += 0.1
    assert model.status.reason == "QuotaExceeded"
    tries = [action for action in model.done if isinstance(action, Create) and action.name == name]
    assert len(tries) == 2, "at once, and after two seconds"
    model.rejects.clear()
    await model.settle()
    assert model.status.phase is Phase.RUNNING


async def test_a_job_of_the_same_name_is_not_held_to_what_happened_to_the_one_before():
    model = Model(job())
    model.rejects["mnist-worker-0"] = Rejected("Invalid", "no such field")
    await model.step()
    await model.step()
    model.rejects.clear()
    fresh = job()
    model.job = fresh.model_copy(update={"metadata": fresh.metadata.model_copy(update={"uid": "another"})})
    await model.step()
    assert len(model.pods) == 2


def test_the_environment_of_an_earlier_job_of_the_same_name_is_not_read():
    former = names.environment_of("mnist", "b7f30", 1)
    assert former != names.environment(job(), 1)


async def test_a_job_that_has_succeeded_is_not_suspended():
    model = await running(workers=1)
    model.end("mnist-worker-0", 0)
    model.edit(workers=1, suspend=True)
    await model.settle()
    assert model.status.phase is Phase.COMPLETED


async def test_a_worker_that_is_done_may_lose_its_pod_in_any_way():
    model = await running(workers=2)
    model.end("mnist-worker-0", 0)
    await model.settle()
    model.change("mnist-worker-0", phase=PodPhase.FAILED, disrupted=True, reason="Evicted")
    await model.settle()
    assert (model.status.phase, model.status.attempt) == (Phase.RUNNING, 1)


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


async def test_a_service_that_someone_deleted_is_created_again():
    model = await running(intranet="Service")
    model.services.clear()
    await model.settle()
    assert model.services == {"mnist-peers"}


async def test_a_host_name_in_the_template_of_a_job_by_service_is_replaced_and_that_is_said():
    template = {"metadata": {}, "spec": {"hostname": "mine", "containers": [{"name": "paddle", "image": "i"}]}}
    model = Model(job(intranet="Service", worker_={"template": template}))
    await model.settle()
    assert [one.message for one in model.events if one.reason == "HostNameOverridden"] == [
        "the template sets worker: hostname; with intranet: Service pods are found by their own names"
    ]
    assert model.manifests["mnist-worker-0"]["spec"]["hostname"] == "mnist-worker-0"


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


async def test_pods_of_an_older_operator_keep_their_own_services_until_their_attempt_ends():
    model = await running(intranet="Service")
    for index in range(2):
        model.change(f"mnist-worker-{index}", service="")
    model.services = {"mnist-worker-0"}
    await model.settle()
    assert model.services == {"mnist-worker-0", "mnist-worker-1", "mnist-peers"}
    model.environments.clear()
    await model.settle()
    (variables,) = model.environments.values()
    assert variables["PADDLE_TRAINERS"] == "mnist-worker-0.default.svc,mnist-worker-1.default.svc"
    model.end("mnist-worker-0", 1)
    await model.settle()
    assert model.status.attempt == 2
    assert model.services == {"mnist-peers"}
    assert model.environments[2]["PADDLE_TRAINERS"].startswith("mnist-worker-0.mnist-peers.default.svc,")


async def test_a_pod_held_by_a_finalizer_is_named():
    model = await running()
    model.kubelet_runs = False
    model.end("mnist-worker-0", 1)
    await model.step()
    model.perform = _without_force(model)
    model.now += 200
    await model.step()
    assert model.status.reason == "OldPodRemains"
    assert "finalizers" in model.status.message


def _without_force(model: Model):
    perform = model.perform

    async def held(job_, action) -> None:
        if not (isinstance(action, Delete) and action.force):
            await perform(job_, action)

    return held


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


async def test_conditions_tell_the_newest_reason():
    model = await running()
    model.end("mnist-worker-0", 1)
    await model.step()
    gone = model.status.condition("Running")
    assert (gone.status, gone.reason) == ("False", "ProgramFailed")
    restarting = model.status.condition("Restarting")
    assert (restarting.status, restarting.reason) == ("True", "ProgramFailed")


async def test_sidecars_of_a_failed_job_are_stopped_too():
    model = await running(backoffLimit=0, cleanPodPolicy="Never")
    model.change("mnist-worker-1", lingers=True)
    for index in range(2):
        model.end(f"mnist-worker-{index}", 1)
    await model.step()
    assert [action.pod.name for action in model.done if isinstance(action, Stop)] == ["mnist-worker-1"]


def test_a_variable_of_the_users_comes_before_those_made_from_it():
    given = template(env=[{"name": "MINE", "value": "1"}, {"name": "PADDLE_PORT", "value": "9000"}])
    made = pod_manifest(job(worker_={"template": given}), Role.WORKER, 0, 1, "build")
    order = [one["name"] for one in made["spec"]["containers"][0]["env"]]
    assert order.index("PADDLE_PORT") < order.index("PADDLE_CURRENT_ENDPOINT") < order.index("MINE")


def test_containers_are_never_restarted_by_the_kubelet():
    made = pod_manifest(job(worker_={"template": template(restartPolicy="Always")}), Role.WORKER, 0, 1, "build")
    assert "restartPolicy" not in made["spec"]["containers"][0]


async def test_pods_of_a_job_that_was_suspended_before_its_first_status_are_not_mistaken_for_a_success():
    model = Model(job(workers=1))
    await model.step()
    model.tick()
    model.change("mnist-worker-0", phase=PodPhase.SUCCEEDED)
    model.edit(workers=1, suspend=True)
    await model.step()
    await model.step()
    assert (model.status.phase, model.status.attempt) == (Phase.SUSPENDED, 2)
