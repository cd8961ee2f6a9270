"""The two CloudFormation stacks of a cluster: their templates and every operation on them."""
