"""What a Python program does with a queue that requires sessions, by the unmodified azure-servicebus."""
import os
import time

from azure.servicebus import NEXT_AVAILABLE_SESSION, ServiceBusClient, ServiceBusMessage, ServiceBusSubQueue
from azure.servicebus.exceptions import OperationTimeoutError, ServiceBusError, SessionCannotBeLockedError

from checks import check, equal, fails, finish

QUEUE = "python-sessions"
client = ServiceBusClient.from_connection_string(os.environ["CLIENTS_SERVICEBUS"], retry_total=0)
sender = client.get_queue_sender(QUEUE)


def message(session, name):
    return ServiceBusMessage(name, session_id=session, message_id=name)


def receive(source, n=1):
    got = []
    while len(got) < n:
        some = source.receive_messages(max_message_count=n - len(got), max_wait_time=5)
        if not some:
            raise AssertionError(f"only {len(got)} of {n} messages arrived")
        got += some
    return got


def ids(ms):
    return [m.message_id for m in ms]


@check("a session by its name, in order")
def _():
    sender.send_messages([message("a", "a1"), message("b", "b1"), message("a", "a2")])
    with client.get_queue_receiver(QUEUE, session_id="a") as r:
        equal(r.session.session_id, "a")
        ms = receive(r, 2)
        equal(ids(ms), ["a1", "a2"])
        for m in ms:
            r.complete_message(m)


@check("the next session")
def _():
    with client.get_queue_receiver(QUEUE, session_id=NEXT_AVAILABLE_SESSION, max_wait_time=5) as r:
        equal(r.session.session_id, "b")
        r.abandon_message(receive(r)[0])
        [m] = receive(r)
        equal((m.message_id, m.delivery_count, m.session_id), ("b1", 1, "b"))
        r.complete_message(m)


@check("no session is a timeout")
def _():
    def accept():
        with client.get_queue_receiver(QUEUE, session_id=NEXT_AVAILABLE_SESSION, max_wait_time=2):
            pass
    fails(OperationTimeoutError, accept)


@check("a session that another has locked")
def _():
    def accept():
        with client.get_queue_receiver(QUEUE, session_id="held"):
            pass
    with client.get_queue_receiver(QUEUE, session_id="held"):
        fails(SessionCannotBeLockedError, accept)


@check("state and renewal")
def _():
    with client.get_queue_receiver(QUEUE, session_id="state") as r:
        equal(r.session.get_state(), None)
        r.session.set_state(b"so far")
        equal(r.session.get_state(), b"so far")
        before = r.session.locked_until_utc
        time.sleep(0.05)
        equal(r.session.renew_lock() > before, True, "renewed")
        r.session.set_state(None)


@check("defer, peek and dead-letter in a session")
def _():
    sender.send_messages(message("d", "d1"))
    with client.get_queue_receiver(QUEUE, session_id="d") as r:
        [m] = receive(r)
        r.defer_message(m)
        equal(ids(r.peek_messages(max_message_count=10, sequence_number=m.sequence_number)), ["d1"])
        [m] = r.receive_deferred_messages(m.sequence_number)
        r.dead_letter_message(m, reason="Bad")
    with client.get_queue_receiver(QUEUE, sub_queue=ServiceBusSubQueue.DEAD_LETTER) as r:
        [m] = receive(r)
        equal((m.message_id, m.session_id, m.dead_letter_reason), ("d1", "d", "Bad"))
        r.complete_message(m)


@check("a message without a session")
def _():
    fails(ServiceBusError, lambda: sender.send_messages(ServiceBusMessage("x")))


client.close()
finish("Python Service Bus sessions")
