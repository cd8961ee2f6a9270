"""Jobs in a queue of Kueue: waiting for quota, giving it back, and telling Kueue how far the job is."""
