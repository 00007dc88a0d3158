"""Writes a state database as SQL text: dump.py DATABASE TEXT=WORD... > state.sql

Each TEXT becomes WORD, so that a test can put another folder and other ports in its place. Bytes that are text are written as text.
"""
import sqlite3
import sys

path, pairs = sys.argv[1], [pair.rsplit("=", 1) for pair in sys.argv[2:]]
database = sqlite3.connect(path)
database.text_factory = bytes


def put(text):
    for old, new in pairs:
        text = text.replace(old, new)
    return text


def quoted(text):
    return "'" + put(text).replace("'", "''") + "'"


def literal(value):
    if value is None:
        return "NULL"
    if isinstance(value, (int, float)):
        return repr(value)
    # `typeof` says which of the two it was.
    kind, data = value
    if kind == b"text":
        return quoted(data.decode())
    if data and all(32 <= byte < 127 for byte in data):
        return f"CAST({quoted(data.decode())} AS BLOB)"
    return "X'" + data.hex() + "'"


def text(value):
    return value.decode()


print(f"PRAGMA application_id = {database.execute('PRAGMA application_id').fetchone()[0]};")
print("BEGIN;")
schema = [
    (text(kind), text(name), text(sql))
    for kind, name, sql in database.execute("SELECT type, name, sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY rowid")
]
tables = [(name, sql) for kind, name, sql in schema if kind == "table"]
for name, sql in tables:
    if name != "sqlite_sequence":
        print(sql + ";")
for name, _ in tables:
    columns = [text(row[1]) for row in database.execute(f"PRAGMA table_info({name})")]
    asked = ", ".join(f"{column}, typeof({column})" for column in columns)
    if name == "sqlite_sequence":
        print("DELETE FROM sqlite_sequence;")
    for row in database.execute(f"SELECT {asked} FROM {name}"):
        values = [(kind, value) if kind in (b"text", b"blob") else value for value, kind in zip(row[::2], row[1::2])]
        print(f"INSERT INTO {name} ({', '.join(columns)}) VALUES ({', '.join(map(literal, values))});")
for kind, _, sql in schema:
    if kind != "table":
        print(sql + ";")
print(f"PRAGMA user_version = {database.execute('PRAGMA user_version').fetchone()[0]};")
print("COMMIT;")
