"""Each file of this folder is one command, or one group of commands."""
