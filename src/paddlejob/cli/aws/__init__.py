"""`pdj aws`: the verbs that manage a cluster on AWS. The work is done in paddlejob.cloud.aws."""
