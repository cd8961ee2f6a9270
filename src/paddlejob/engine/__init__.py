"""The loop that both backends share: observe, plan, report, carry out. It knows no Kubernetes and no processes."""
