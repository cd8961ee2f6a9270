"""What runs beside a cluster: CoreDNS, KWOK's fake nodes, Volcano, Kueue, and an HDFS for the data tests."""
