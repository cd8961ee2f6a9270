"""What is generated from the definitions of the operator's metrics: alert rules, a dashboard and a reference page."""
