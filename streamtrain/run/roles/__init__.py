"""The processes of a running job. Each file without a leading underscore is one, with HELP and run(config)."""
