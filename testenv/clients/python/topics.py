"""What a Python program does with a topic and its subscriptions, by the unmodified azure-servicebus."""
import datetime
import os

from azure.servicebus import ServiceBusClient, ServiceBusMessage, ServiceBusSubQueue
from azure.servicebus.exceptions import ServiceBusAuthenticationError

from checks import check, equal, fails, finish

TOPIC = "python-events"
client = ServiceBusClient.from_connection_string(os.environ["CLIENTS_SERVICEBUS"], retry_total=1)
sender = client.get_topic_sender(TOPIC)


def completed(subscription, n=1, **kwargs):
    got = []
    with client.get_subscription_receiver(TOPIC, subscription, **kwargs) as r:
        while len(got) < n:
            some = r.receive_messages(max_message_count=n - len(got), max_wait_time=5)
            if not some:
                raise AssertionError(f"only {len(got)} of {n} messages arrived")
            for m in some:
                r.complete_message(m)
            got += some
    return got


def ids(ms):
    return [m.message_id for m in ms]


@check("each subscription gets what its rules select")
def _():
    sender.send_messages([
        ServiceBusMessage("1", message_id="small", subject="order", application_properties={"amount": 40, "color": "blue"}),
        ServiceBusMessage("2", message_id="large", subject="orders", application_properties={"amount": 400, "color": "blue"}),
        ServiceBusMessage("3", message_id="other", subject="invoice", application_properties={"amount": 4000}),
    ])
    equal(ids(completed("all", 3)), ["small", "large", "other"])
    [m] = completed("large")
    equal((m.message_id, m.application_properties[b"size"], m.application_properties[b"RuleName"]), ("large", b"large", b"amount"))
    equal(ids(completed("blue")), ["small"])


@check("dead letters of a subscription")
def _():
    sender.send_messages(ServiceBusMessage("x", message_id="dead"))
    with client.get_subscription_receiver(TOPIC, "all") as r:
        [m] = r.receive_messages(max_wait_time=5)
        r.dead_letter_message(m, reason="Bad")
    [m] = completed("all", sub_queue=ServiceBusSubQueue.DEAD_LETTER)
    equal((m.message_id, m.dead_letter_reason, m.dead_letter_source), ("dead", "Bad", f"{TOPIC}/Subscriptions/all"))


@check("schedule on a topic")
def _():
    sender.schedule_messages(ServiceBusMessage("x", message_id="later"), datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=0.5))
    equal(ids(completed("all")), ["later"])


@check("a subscription that does not exist")
def _():
    fails(ServiceBusAuthenticationError, lambda: completed("nobody"))


client.close()
finish("Python Service Bus topics")
