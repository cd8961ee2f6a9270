"""Where jobs live: the local machine or a cluster, behind one `Target` protocol."""
