"""What the schema allows but no pod can do, and what an author can hardly have meant; `pods.check_job` runs all."""
