"""A DNS server that knows one address for every name, over UDP (RFC 1035).

    name_server.py ANSWER ADDRESS...

Listens at port 53 of each ADDRESS, prints `ready`, and a line for each question.
"""

import select
import socket
import sys


def reply(question, answer):
    end = 12
    labels = []
    while question[end]:
        labels.append(question[end + 1 : end + 1 + question[end]].decode())
        end += 1 + question[end]
    end += 5
    kind = int.from_bytes(question[end - 4 : end - 2], "big")
    has = kind == 1
    print(f"{'.'.join(labels)} {kind}", flush=True)
    head = question[:2] + b"\x81\x80" + b"\0\1" + (b"\0\1" if has else b"\0\0") + bytes(4)
    record = b"\xc0\x0c\0\1\0\1" + (30).to_bytes(4, "big") + b"\0\4" + socket.inet_aton(answer)
    return head + question[12:end] + (record if has else b"")


def main():
    answer, addresses = sys.argv[1], sys.argv[2:]
    sockets = []
    for address in addresses:
        sockets.append(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        sockets[-1].bind((address, 53))
    print("ready", flush=True)
    while True:
        for one in select.select(sockets, [], [])[0]:
            question, client = one.recvfrom(2048)
            one.sendto(reply(question, answer), client)


main()
