"""The operator's metrics for Prometheus.

Every metric is defined in `definitions`. The reference page, the alert rules and the Grafana dashboard are generated
from the definitions by tools/monitoring.
"""

from paddlejob.operator.metrics.registry import Metrics

__all__ = ["Metrics"]
