"""The CloudFormation stack of one cluster: its template and every operation on it."""
