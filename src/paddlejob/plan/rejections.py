"""What the cluster would not do, in words for the job, and when it is asked again."""

from __future__ import annotations

from paddlejob.plan.world import Rejection

FIRST_DELAY = 2.0
LONGEST_DELAY = 60.0
LONGEST_HOLDING = 10.0
"""A job that holds pods while it waits for others asks more often: what another job releases must find a taker."""
GOING_DELAY = 1.0
GOING = "BeingDeleted"
NAME_TAKEN = "NameTaken"


def delay(reason: str, times: int, holding: bool) -> float:
    if reason == GOING:
        return GOING_DELAY
    return min(FIRST_DELAY * 2.0 ** min(times - 1, 10), LONGEST_HOLDING if holding else LONGEST_DELAY)


def over_quota(rejection: Rejection) -> bool:
    return "exceeded quota" in rejection.message


def told(rejection: Rejection) -> tuple[str, str]:
    """A reason in one word, and a message that says what to do first."""
    name, words = rejection.name, rejection.message
    if rejection.reason == GOING:
        return "WaitingForOldPods", f"{name} of an earlier job is still being deleted; the new one follows: {words}"
    if rejection.reason == NAME_TAKEN:
        return NAME_TAKEN, f"{name} exists already and is not this job's; delete it or rename the job: {words}"
    if over_quota(rejection):
        return "QuotaExceeded", (
            f"{name} is over the namespace's quota; free some, raise the quota or ask for less: {words}"
        )
    if "failed calling webhook" in words:
        return "WebhookFailed", (
            f"{name} cannot be created: an admission webhook does not answer; mend it, or delete its configuration "
            f"if it was left behind (`pdj doctor` names it): {words}"
        )
    return "AdmissionRefused", f"the cluster refused {name}; change the job as it says: {words}"
