"""botocore's exceptions as errors of paddlejob. No other module knows botocore's exceptions.

NotPossible
├── AwsError            AWS rejected the request; has AWS's error code and message
└── AwsUnavailable      no answer or throttled; the same request may work later
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from paddlejob.errors import NotPossible, PaddleJobError

_EXPIRED = ("ExpiredToken", "ExpiredTokenException", "RequestExpired", "TokenRefreshRequired")
_INVALID_CREDENTIALS = ("InvalidClientTokenId", "UnrecognizedClientException", "AuthFailure", "SignatureDoesNotMatch")
_FORBIDDEN = ("AccessDenied", "AccessDeniedException", "UnauthorizedOperation", "Forbidden", "403")
_THROTTLED = (
    *("Throttling", "ThrottlingException", "ThrottledException", "RequestThrottled", "RequestLimitExceeded"),
    *("TooManyRequestsException", "SlowDown", "PriorRequestNotComplete"),
)
QUOTA_ADVICE = "request an increase under Service Quotas in the AWS console, or delete resources you no longer use"


class AwsError(NotPossible):
    """AWS rejected a request. `code` and `message` are AWS's own; the text of the error adds the remedy."""

    def __init__(self, text: str, code: str, message: str) -> None:
        super().__init__(text)
        self.code = code
        self.message = message


class AwsUnavailable(NotPossible):
    """AWS did not answer or throttled the request; the same request may work later."""


@contextmanager
def translate_errors(request: str) -> Iterator[None]:
    """Translate the exceptions that botocore raises inside the block. `request` is named in the message."""
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        yield
    except ClientError as error:
        raise _rejected(request, error) from None
    except BotoCoreError as error:
        raise _not_sent(request, error) from None


def is_quota(text: str) -> bool:
    """Whether an error code, or the reason of a failed resource, is about a quota."""
    lowered = text.lower().replace(" ", "")
    parts = ("limitexceeded", "quota", "maximumnumberof", "vcpulimit", "maxspotinstancecount")
    return any(part in lowered for part in parts)


def _rejected(request: str, error: Exception) -> PaddleJobError:
    response: dict[str, str] = getattr(error, "response", {}).get("Error", {})
    code, message = response.get("Code", ""), response.get("Message", "") or str(error)
    if code in _THROTTLED:
        return AwsUnavailable(f"AWS throttled {request} ({code}); run the same command again in a minute")
    return AwsError(_describe(request, code, message), code, message)


def _describe(request: str, code: str, message: str) -> str:
    if code in _EXPIRED:
        return (
            "the AWS session has expired; sign in again (with SSO: `aws sso login`), then run the same command to "
            "resume"
        )
    if code in _INVALID_CREDENTIALS:
        return f"AWS does not accept these credentials ({code}); check `aws configure list` and AWS_PROFILE"
    if code in _FORBIDDEN:
        return f"AWS denied {request}: {message}; `pdj aws policy` prints the required permissions"
    if code.startswith("AlreadyExists"):
        return f"the name is already in use ({request}: {message}); choose another clusterName"
    if is_quota(code):
        return f"an AWS quota is exhausted ({request}: {message}); {QUOTA_ADVICE}"
    return f"AWS rejected {request}: {message} ({code})"


def _not_sent(request: str, error: Exception) -> PaddleJobError:
    from botocore import exceptions as boto

    if isinstance(error, boto.NoCredentialsError | boto.PartialCredentialsError | boto.CredentialRetrievalError):
        return NotPossible(
            f"no AWS credentials ({error}); run `aws configure`, or set AWS_PROFILE, or AWS_ACCESS_KEY_ID and "
            "AWS_SECRET_ACCESS_KEY"
        )
    if isinstance(error, boto.SSOError | boto.TokenRetrievalError):
        return NotPossible(f"the AWS session has expired ({error}); run `aws sso login`, then the same command")
    if isinstance(error, boto.ProfileNotFound):
        return NotPossible(f"{error}; choose one that `aws configure list-profiles` shows")
    if isinstance(error, boto.HTTPClientError | boto.ConnectionError):
        return AwsUnavailable(
            f"no answer from AWS ({request}: {error}); check the network and the region, and run the command again"
        )
    if isinstance(error, boto.ParamValidationError):
        return NotPossible(f"AWS {request}: {error}")
    text = str(error).rstrip(".")
    return NotPossible(f"{text}; check --profile, the AWS configuration file and the environment variables AWS_...")
