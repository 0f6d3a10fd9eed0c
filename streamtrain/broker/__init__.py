"""The embedded Kafka: real Apache Kafka on this machine, without Java, Docker or Kafka being installed by hand."""

from streamtrain.broker.broker import Broker, BrokerStatus, broker_status, find_broker, start_broker, stop_broker

__all__ = ["Broker", "BrokerStatus", "broker_status", "find_broker", "start_broker", "stop_broker"]
