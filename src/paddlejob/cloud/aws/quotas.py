"""Whether the account's quota allows the nodes of cluster.yaml; EC2 would report that only after minutes."""

from __future__ import annotations

from paddlejob.cloud.aws.config.cluster import ClusterConfig
from paddlejob.cloud.aws.errors import QUOTA_ADVICE, AwsError
from paddlejob.cloud.aws.session import Aws

# vCPUs of running instances by first letters of the family: on demand, spot.
_QUOTAS = {
    "p": ("L-417A185B", "L-7212CCBC"),
    "g": ("L-DB2E81BA", "L-3819A6DF"),
    "gr": ("L-DB2E81BA", "L-3819A6DF"),
    "vt": ("L-DB2E81BA", "L-3819A6DF"),
    **dict.fromkeys(("a", "c", "d", "h", "i", "m", "r", "t", "z"), ("L-1216C47A", "L-34B43A08")),
}


def quota_problems(aws: Aws, config: ClusterConfig) -> list[str]:
    """Compare the vCPUs of all nodes with the quota. Other instances of the account use the quota too."""
    codes = _QUOTAS.get(_letters(config.worker_instance_type))
    if codes is None or config.worker_count == 0:
        return []
    try:
        answer = aws.call("ec2", "describe_instance_types", InstanceTypes=[config.worker_instance_type])
        quota = aws.call("service-quotas", "get_service_quota", ServiceCode="ec2", QuotaCode=codes[config.worker_spot])[
            "Quota"
        ]
    except AwsError:  # no such type, which is reported elsewhere, or no permission to ask
        return []
    wanted = answer["InstanceTypes"][0]["VCpuInfo"]["DefaultVCpus"] * config.worker_count
    if wanted <= quota["Value"]:
        return []
    return [
        f"workerCount: {config.worker_count} x {config.worker_instance_type} need {wanted} vCPUs, and the quota "
        f"{quota['QuotaName']!r} is {quota['Value']:.0f}; lower workerCount, or {QUOTA_ADVICE}"
    ]


def _letters(instance_type: str) -> str:
    """Return the letters before the generation: g of g4dn.xlarge, gr of gr6.4xlarge."""
    return instance_type[: next((n for n, letter in enumerate(instance_type) if not letter.isalpha()), None)]
