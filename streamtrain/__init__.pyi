from streamtrain.clients.live_model import LiveModel as LiveModel
from streamtrain.clients.predictions import read_predictions as read_predictions
from streamtrain.clients.snapshots import follow_snapshots as follow_snapshots
from streamtrain.clients.writer import RecordWriter as RecordWriter
from streamtrain.job import Job as Job

__version__: str
