from streamtrain.clients.answers import ModelAnswer as ModelAnswer
from streamtrain.clients.history import Published as Published
from streamtrain.clients.history import RunEnded as RunEnded
from streamtrain.clients.history import history as history
from streamtrain.clients.live_model import LiveModel as LiveModel
from streamtrain.clients.predictions import read_predictions as read_predictions
from streamtrain.clients.snapshots import Snapshot as Snapshot
from streamtrain.clients.snapshots import follow_snapshots as follow_snapshots
from streamtrain.clients.writer import RecordWriter as RecordWriter
from streamtrain.errors import CheckFailed as CheckFailed
from streamtrain.errors import KafkaBroken as KafkaBroken
from streamtrain.errors import KafkaDenied as KafkaDenied
from streamtrain.errors import KafkaSettling as KafkaSettling
from streamtrain.errors import KafkaUnreachable as KafkaUnreachable
from streamtrain.errors import RecordError as RecordError
from streamtrain.errors import Replaced as Replaced
from streamtrain.errors import SnapshotError as SnapshotError
from streamtrain.errors import StreamtrainError as StreamtrainError
from streamtrain.errors import TooManyOpenFiles as TooManyOpenFiles
from streamtrain.errors import UserMistake as UserMistake
from streamtrain.fitting.fit import Fitted as Fitted
from streamtrain.fitting.fit import fit as fit
from streamtrain.job import Job as Job
from streamtrain.topics.predictions import Answer as Answer
from streamtrain.topics.predictions import RowAnswer as RowAnswer
from streamtrain.topics.predictions import RowError as RowError

__version__: str
