"""What a Python program does with the administration API, by the unmodified azure-servicebus. The client knows only https on
the port of AMQP, so that its requests are sent to the address of the management endpoint instead."""
import datetime
import os
from urllib.parse import urlsplit

from azure.core.exceptions import ResourceExistsError, ResourceNotFoundError
from azure.core.pipeline.transport import RequestsTransport
from azure.servicebus.management import (
    CorrelationRuleFilter, ServiceBusAdministrationClient, SqlRuleAction, SqlRuleFilter, TrueRuleFilter,
)

from checks import check, equal, fails, finish


class Redirected(RequestsTransport):
    def send(self, request, **kwargs):
        url = urlsplit(request.url)
        request.url = url._replace(scheme="http", netloc=os.environ["CLIENTS_SERVICEBUS_ADMIN"]).geturl()
        return super().send(request, **kwargs)


client = ServiceBusAdministrationClient.from_connection_string(os.environ["CLIENTS_SERVICEBUS"], transport=Redirected(), retry_total=0)


@check("a queue")
def _():
    made = client.create_queue("python-made", lock_duration=datetime.timedelta(seconds=30), max_delivery_count=3, user_metadata="a & b")
    equal((made.name, made.lock_duration, made.max_delivery_count, made.user_metadata), ("python-made", datetime.timedelta(seconds=30), 3, "a & b"))
    made.max_delivery_count = 4
    client.update_queue(made)
    equal(client.get_queue("python-made").max_delivery_count, 4)
    equal(client.get_queue_runtime_properties("python-made").total_message_count, 0)
    equal("python-made" in [q.name for q in client.list_queues()], True)
    fails(ResourceExistsError, lambda: client.create_queue("python-made"))
    client.delete_queue("python-made")
    fails(ResourceNotFoundError, lambda: client.get_queue("python-made"))


@check("a topic, a subscription and rules")
def _():
    client.create_topic("python-topic")
    client.create_subscription("python-topic", "sub")
    client.create_rule("python-topic", "sub", "sql", filter=SqlRuleFilter("a = @a", {"@a": 7}), action=SqlRuleAction("SET b = 2"))
    client.create_rule("python-topic", "sub", "correlation", filter=CorrelationRuleFilter(correlation_id="c", properties={"n": 7, "s": "x"}))
    rules = list(client.list_rules("python-topic", "sub"))
    equal([r.name for r in rules], ["$Default", "sql", "correlation"])
    equal(isinstance(rules[0].filter, TrueRuleFilter), True)
    equal((rules[1].filter.sql_expression, rules[1].filter.parameters, rules[1].action.sql_expression), ("a = @a", {"@a": 7}, "SET b = 2"))
    equal((rules[2].filter.correlation_id, rules[2].filter.properties), ("c", {"n": 7, "s": "x"}))
    equal(client.get_topic_runtime_properties("python-topic").subscription_count, 1)
    equal(client.get_subscription_runtime_properties("python-topic", "sub").active_message_count, 0)
    client.delete_topic("python-topic")
    fails(ResourceNotFoundError, lambda: client.get_subscription("python-topic", "sub"))


finish("Python Service Bus administration")
