"""A training UI over the topics: what a job's publications, control, dead letters and offsets tell, as pages.

It reads and never writes; `following` and `cluster` know Kafka, `charts` what is drawn, `pages` how, `app` puts them
behind one server.
"""
