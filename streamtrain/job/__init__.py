"""The job file: read, checked as a whole, and typed. Common to all parts; opens nothing but the file it is given."""

from streamtrain.job.job import Job
from streamtrain.job.mistakes import JobMistakes, Mistake
from streamtrain.job.table import Setting, settings_table

__all__ = ["Job", "JobMistakes", "Mistake", "Setting", "settings_table"]
