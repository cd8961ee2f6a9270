"""The CloudFormation templates: YAML parts, and what puts them together for a cluster. Nothing here calls AWS."""
