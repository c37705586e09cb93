"""What a Python program does with a queue, by the unmodified azure-servicebus."""
import datetime
import os
import time

from azure.servicebus import AutoLockRenewer, ServiceBusClient, ServiceBusMessage, ServiceBusReceiveMode, ServiceBusSubQueue
from azure.servicebus.amqp import AmqpAnnotatedMessage
from azure.servicebus.exceptions import MessageNotFoundError, MessageSizeExceededError, ServiceBusAuthenticationError, ServiceBusError

from checks import check, equal, fails, finish

QUEUE = "python"
client = ServiceBusClient.from_connection_string(os.environ["CLIENTS_SERVICEBUS"], retry_total=1)
sender = client.get_queue_sender(QUEUE)
receiver = client.get_queue_receiver(QUEUE)
dead_letters = client.get_queue_receiver(QUEUE, sub_queue=ServiceBusSubQueue.DEAD_LETTER)


def receive(n=1, source=None):
    got = []
    while len(got) < n:
        some = (source or receiver).receive_messages(max_message_count=n - len(got), max_wait_time=5)
        if not some:
            raise AssertionError(f"only {len(got)} of {n} messages arrived")
        got += some
    return got


def empty(**kwargs):
    # A receiver of its own: the client leaves its credit with the service, and the next message would go there.
    with client.get_queue_receiver(QUEUE, **kwargs) as r:
        equal(len(r.receive_messages(max_wait_time=0.3)), 0, "messages left")


def body(m):
    return b"".join(m.body)


@check("send, receive, complete")
def _():
    sender.send_messages(ServiceBusMessage(
        b'{"amount":40}', message_id="m1", subject="s", correlation_id="c", content_type="application/json",
        application_properties={"text": "t", "number": 7, "flag": True}, time_to_live=datetime.timedelta(minutes=1),
    ))
    [m] = receive()
    equal((m.message_id, m.subject, m.correlation_id, m.content_type, body(m)), ("m1", "s", "c", "application/json", b'{"amount":40}'))
    equal(m.application_properties, {b"text": b"t", b"number": 7, b"flag": True})
    equal((m.delivery_count, m.time_to_live, m.state.name), (0, datetime.timedelta(minutes=1), "ACTIVE"))
    equal(m.lock_token is not None and m.sequence_number > 0, True, "lock token and number")
    receiver.complete_message(m)
    empty()


@check("a batch")
def _():
    batch = sender.create_message_batch()
    for i in range(20):
        batch.add_message(ServiceBusMessage(str(i), message_id=f"b{i}"))
    sender.send_messages(batch)
    got = receive(20)
    equal([body(m) for m in got], [str(i).encode() for i in range(20)])
    for m in got:
        receiver.complete_message(m)


@check("a value and a sequence as body")
def _():
    sender.send_messages(AmqpAnnotatedMessage(value_body={"a": [1, None]}))
    sender.send_messages(AmqpAnnotatedMessage(sequence_body=[[1, "a"]]))
    for m in receive(2):
        equal(m.raw_amqp_message.body_type.name in ("VALUE", "SEQUENCE"), True, "kind of body")
        receiver.complete_message(m)


@check("abandon counts")
def _():
    sender.send_messages(ServiceBusMessage("x", message_id="a"))
    receiver.abandon_message(receive()[0])
    [m] = receive()
    equal(m.delivery_count, 1)
    receiver.complete_message(m)


@check("defer and receive by sequence number")
def _():
    sender.send_messages(ServiceBusMessage("x", message_id="d"))
    [m] = receive()
    receiver.defer_message(m)
    empty()
    [m] = receiver.receive_deferred_messages(m.sequence_number)
    equal((m.message_id, m.delivery_count), ("d", 1))
    receiver.complete_message(m)
    fails(MessageNotFoundError, lambda: receiver.receive_deferred_messages(m.sequence_number))


@check("dead-letter and the dead-letter queue")
def _():
    sender.send_messages(ServiceBusMessage("x", message_id="dl", application_properties={"keep": 1}))
    receiver.dead_letter_message(receive()[0], reason="Bad", error_description="very")
    [m] = receive(source=dead_letters)
    equal((m.message_id, m.dead_letter_reason, m.dead_letter_error_description, m.dead_letter_source), ("dl", "Bad", "very", QUEUE))
    equal(m.application_properties[b"keep"], 1)
    dead_letters.complete_message(m)
    empty(sub_queue=ServiceBusSubQueue.DEAD_LETTER)


@check("a deferred message is dead-lettered")
def _():
    sender.send_messages(ServiceBusMessage("x", message_id="dd"))
    [m] = receive()
    receiver.defer_message(m)
    [m] = receiver.receive_deferred_messages(m.sequence_number)
    receiver.dead_letter_message(m, reason="Late")
    [m] = receive(source=dead_letters)
    equal((m.message_id, m.dead_letter_reason), ("dd", "Late"))
    dead_letters.complete_message(m)


@check("too many deliveries")
def _():
    sender.send_messages(ServiceBusMessage("x", message_id="poison"))
    for _ in range(5):
        receiver.abandon_message(receive()[0])
    [m] = receive(source=dead_letters)
    equal((m.message_id, m.dead_letter_reason), ("poison", "MaxDeliveryCountExceeded"))
    dead_letters.complete_message(m)


@check("peek")
def _():
    sender.send_messages([ServiceBusMessage("1", message_id="p1"), ServiceBusMessage("2", message_id="p2")])
    got = receive(2)
    peeked = receiver.peek_messages(max_message_count=2, sequence_number=got[0].sequence_number)
    equal([m.message_id for m in peeked], ["p1", "p2"])
    for m in got:
        receiver.complete_message(m)


@check("schedule and cancel")
def _():
    now = datetime.datetime.now(datetime.timezone.utc)
    sender.schedule_messages(ServiceBusMessage("x", message_id="s1"), now + datetime.timedelta(seconds=0.7))
    [other] = sender.schedule_messages(ServiceBusMessage("x", message_id="s2"), now + datetime.timedelta(minutes=1))
    sender.cancel_scheduled_messages(other)
    [m] = receive()
    equal(m.message_id, "s1")
    receiver.complete_message(m)
    fails(ServiceBusError, lambda: sender.cancel_scheduled_messages(other))


@check("renew a lock")
def _():
    sender.send_messages(ServiceBusMessage("x", message_id="lock"))
    [m] = receive()
    before = m.locked_until_utc
    time.sleep(0.05)
    equal(receiver.renew_message_lock(m) > before, True, "renewed")
    with AutoLockRenewer() as renewer:
        renewer.register(receiver, m, max_lock_renewal_duration=60)
        receiver.complete_message(m)
    empty()


@check("receive and delete")
def _():
    sender.send_messages(ServiceBusMessage("x", message_id="rd"))
    with client.get_queue_receiver(QUEUE, receive_mode=ServiceBusReceiveMode.RECEIVE_AND_DELETE) as r:
        equal([m.message_id for m in receive(source=r)], ["rd"])
    empty()


@check("an iterator ends when nothing comes")
def _():
    sender.send_messages([ServiceBusMessage(str(i), message_id=f"it{i}") for i in range(3)])
    seen = []
    with client.get_queue_receiver(QUEUE, max_wait_time=1) as r:
        for m in r:
            seen.append(m.message_id)
            r.complete_message(m)
    equal(seen, ["it0", "it1", "it2"])


@check("a message that is too large")
def _():
    fails(MessageSizeExceededError, lambda: sender.send_messages(ServiceBusMessage("x" * 300_000)))
    sender.send_messages(ServiceBusMessage("x", message_id="after"))
    receiver.complete_message(receive()[0])


@check("a queue that does not exist")
def _():
    # The client's own live test expects this error: the service answers the put-token with 404.
    fails(ServiceBusAuthenticationError, lambda: client.get_queue_sender("nowhere").send_messages(ServiceBusMessage("x")))


@check("a wrong key")
def _():
    wrong = os.environ["CLIENTS_SERVICEBUS"].replace("SAS_KEY_VALUE", "wrong")
    with ServiceBusClient.from_connection_string(wrong, retry_total=0) as c:
        fails(ServiceBusAuthenticationError, lambda: c.get_queue_sender(QUEUE).send_messages(ServiceBusMessage("x")))


client.close()
finish("Python Service Bus")
