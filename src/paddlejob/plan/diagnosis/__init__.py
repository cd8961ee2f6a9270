"""Why a job does not run: causes of failures, reasons to wait, rejected requests, pods that do not go away."""
