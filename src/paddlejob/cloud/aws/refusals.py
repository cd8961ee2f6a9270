"""What AWS refuses, in words: botocore's exceptions become errors of paddlejob here, and only here."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from paddlejob.errors import NotPossible, PaddleJobError

_EXPIRED = {"ExpiredToken", "ExpiredTokenException", "RequestExpired", "TokenRefreshRequired"}
_WRONG = {"InvalidClientTokenId", "UnrecognizedClientException", "AuthFailure", "SignatureDoesNotMatch"}
_FORBIDDEN = {"AccessDenied", "AccessDeniedException", "UnauthorizedOperation", "Forbidden", "403"}
_THROTTLED = {
    "Throttling",
    "ThrottlingException",
    "ThrottledException",
    "RequestLimitExceeded",
    "TooManyRequestsException",
    "RequestThrottled",
    "SlowDown",
    "PriorRequestNotComplete",
}


class Refused(NotPossible):
    """AWS answered and said no. `code` is AWS's own."""

    def __init__(self, message: str, code: str, said: str) -> None:
        super().__init__(message)
        self.code = code
        self.said = said


class Disturbed(NotPossible):
    """No answer, or too many requests: the same request may work a little later."""


@contextmanager
def translated(request: str) -> Iterator[None]:
    """Turn what botocore raises inside into an error that says what to do. `request` is named in it."""
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        yield
    except ClientError as error:
        raise _refusal(request, error) from None
    except BotoCoreError as error:
        raise _without_answer(request, error) from None


def _refusal(request: str, error: Exception) -> PaddleJobError:
    answer: dict[str, str] = getattr(error, "response", {}).get("Error", {})
    code, said = answer.get("Code", ""), answer.get("Message", "") or str(error)
    if code in _THROTTLED:
        return Disturbed(f"AWS asks to slow down ({request}: {code}); run the same command again in a minute")
    return Refused(_in_words(request, code, said), code, said)


def _in_words(request: str, code: str, said: str) -> str:
    if code in _EXPIRED:
        return (
            "the AWS session has expired; sign in again (with SSO: `aws sso login`), then run the same "
            "command: it goes on where it was"
        )
    if code in _WRONG:
        return f"AWS does not know these credentials ({code}); check `aws configure list` and AWS_PROFILE"
    if code in _FORBIDDEN:
        return f"AWS does not permit {request}: {said}; `pdj aws policy` prints the rights that are needed"
    if code.startswith("AlreadyExists"):
        return f"the name is taken ({request}: {said}); choose another clusterName"
    if is_quota(code):
        return f"a quota of the AWS account is reached ({request}: {said}); {QUOTA_ADVICE}"
    return f"AWS refuses {request}: {said} ({code})"


def _without_answer(request: str, error: Exception) -> PaddleJobError:
    from botocore import exceptions as boto

    if isinstance(error, boto.NoCredentialsError | boto.PartialCredentialsError | boto.CredentialRetrievalError):
        return NotPossible(
            f"no AWS credentials ({error}); run `aws configure`, or set AWS_PROFILE, or AWS_ACCESS_KEY_ID and "
            "AWS_SECRET_ACCESS_KEY"
        )
    if isinstance(error, boto.SSOError | boto.TokenRetrievalError):
        return NotPossible(f"the AWS session has expired ({error}); run `aws sso login`, then the same command")
    if isinstance(error, boto.ProfileNotFound):
        return NotPossible(f"{error}; name one that `aws configure list-profiles` shows")
    if isinstance(error, boto.HTTPClientError | boto.ConnectionError):
        return Disturbed(f"no answer from AWS ({request}: {error}); check the network and run the same command again")
    return NotPossible(f"AWS {request}: {error}")


QUOTA_ADVICE = "ask for more under Service Quotas in the AWS console, or remove what is no longer used"


def is_quota(text: str) -> bool:
    """Whether an error code, or the reason of a failed resource, speaks of a quota."""
    small = text.lower().replace(" ", "")
    return any(word in small for word in ("limitexceeded", "quota", "maximumnumberof", "vcpulimit"))
