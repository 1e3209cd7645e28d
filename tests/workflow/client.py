"""Ask the tests' server of programs to run one. As a script: in place of this process, with its files and environment.

Each program that a copy of the server starts comes by here, so nothing is imported that takes long.
"""

import json
import os
import socket
import sys


class Call:
    """A program that runs; its process's number."""

    def __init__(self, address: str, order: dict[str, object], files: dict[int, int]):
        self.connection = socket.socket(socket.AF_UNIX)
        self.connection.connect(address)
        text = json.dumps({**order, "numbers": list(files)}).encode()
        socket.send_fds(self.connection, [len(text).to_bytes(8, "big")], list(files.values()))
        self.connection.sendall(text)
        self.process = self._number()

    def _number(self) -> int:
        data = b""
        while len(data) < 8:
            more = self.connection.recv(8 - len(data))
            assert more, "the server of programs has ended"
            data += more
        return int.from_bytes(data, "big", signed=True)

    def wait(self) -> int:
        """Wait for its end; return the exit code."""
        with self.connection:
            return self._number()


def hand_over(address: str, arguments: list[str]) -> int:
    """Have the server at an address run what the script was called with, in place of this process."""
    files = {}
    for number in map(int, os.listdir("/proc/self/fd")):
        try:
            inherited = os.get_inheritable(number)
        except OSError:
            # The listing's own.
            continue
        if inherited:
            files[number] = number
    order = {"command": arguments, "folder": os.getcwd(), "environment": dict(os.environ), "leads": False}
    code = Call(address, order, files).wait()
    if code < 0:
        os.kill(os.getpid(), -code)
    return code


if __name__ == "__main__":
    sys.exit(hand_over(sys.argv[1], sys.argv[2:]))
