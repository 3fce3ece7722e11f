"""A server on stdio that forwards all bytes to and from a unix socket: `bridge.py SOCKET`."""

import contextlib
import os
import socket
import sys
import threading


def copy(receive, send):
    while chunk := receive(65536):
        send(chunk)


def write(data):
    while data:
        data = data[os.write(1, data) :]


connection = socket.socket(socket.AF_UNIX)
connection.connect(sys.argv[1])


def upward():
    copy(lambda size: os.read(0, size), connection.sendall)
    connection.shutdown(socket.SHUT_WR)


threading.Thread(target=upward, daemon=True).start()
# A closed standard output ends the bridge too.
with contextlib.suppress(BrokenPipeError):
    copy(connection.recv, write)
