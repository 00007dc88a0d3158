/// The specification of the loader's messages, by their text.
extension MistakeTests {
    static let syntax: [Mistake] = [
        Mistake("", "a.yaml: is empty; a configuration begins with `version: 1`"),
        Mistake("# nothing\n", "a.yaml: is empty; a configuration begins with `version: 1`"),
        Mistake(
            "version: 1\npolicy:\n\tretry: {}",
            """
            a.yaml:3:1: found character that cannot start any token, while scanning for the next token; indent with \
            spaces, YAML allows no tabs there
                3 | →retry: {}
                  | ^
            """),
        Mistake(
            "version: 1\nfolders:\n- include: [*.mp4]",
            """
            a.yaml:3:14: did not find expected alphabetic or numeric character, while scanning an alias; a text that \
            begins with `*` or `&` needs quotes
                3 | - include: [*.mp4]
                  |              ^
            """),
        Mistake(
            "version: 1\nfolders:\n- name: *x",
            """
            a.yaml:3:9: no anchor of this name comes before the alias; a text that begins with `*` needs quotes
                3 | - name: *x
                  |         ^
            """),
        Mistake(
            "version: 1\na: &a [*a]",
            """
            a.yaml:2:8: this alias is inside the value that it refers to
                2 | a: &a [*a]
                  |        ^
            """),
        Mistake(
            "version: 1\na: b: c",
            """
            a.yaml:2:5: mapping values are not allowed in this context; a text with `: ` in it needs quotes, and keys \
            of one mapping begin in the same column
                2 | a: b: c
                  |     ^
            """),
        Mistake(
            "version: 1\nx: [1,\n2",
            """
            a.yaml:3:2: did not find expected ',' or ']', while parsing a flow sequence that begins in line 2
                3 | 2
                  |  ^
            """),
        Mistake(
            "version: 1\nstate: \"/a",
            """
            a.yaml:2:11: found unexpected end of stream, while scanning a quoted scalar
                2 | state: "/a
                  |           ^
            """),
        Mistake(
            "version: 1\nstate: @foo",
            """
            a.yaml:2:8: found character that cannot start any token, while scanning for the next token; a text that \
            begins so needs quotes
                2 | state: @foo
                  |        ^
            """),
        Mistake(
            "version: 1\n---\nversion: 1",
            """
            a.yaml:2:1: a second document begins here; a configuration is one document
                2 | ---
                  | ^
            """),
        Mistake(
            "version: 1\nstate: !!str /a",
            """
            a.yaml:2:8: a tag (`!…`) is not supported here; remove it
                2 | state: !!str /a
                  |        ^
            """),
        Mistake(
            "version: 1\n<<: {a: 1}",
            """
            a.yaml:2:1: merge keys (`<<`) are not supported; repeat the keys, or use an alias for the whole value
                2 | <<: {a: 1}
                  | ^
            """),
        Mistake(
            "version: 1\n? [a]\n: 1",
            """
            a.yaml:2:3: a key must be a word; a text that begins with `{`, `[` or `*` needs quotes
                2 | ? [a]
                  |   ^
            """),
        Mistake(
            "version: 1\nstate: \"/a\\0b\"",
            """
            a.yaml:2:8: a value with a NUL character in it
                2 | state: "/a\\0b"
                  |        ^
            """),
    ]

    static let keys: [Mistake] = [
        Mistake(
            "state: /a",
            """
            a.yaml:1:1: version: `version` is missing; a configuration begins with `version: 1`
                1 | state: /a
                  | ^
            """),
        Mistake(
            "version: 2",
            """
            a.yaml:1:10: version: is `2`; this program reads version 1
                1 | version: 2
                  |          ^
            """),
        Mistake(
            "version: \"1\"",
            """
            a.yaml:1:10: version: takes the number 1, not a text; leave the quotes out
                1 | version: "1"
                  |          ^
            """),
        Mistake(
            "version: 1\nfoldrs: []",
            """
            a.yaml:2:1: foldrs: no setting is called `foldrs` here; did you mean `folders`?
                2 | foldrs: []
                  | ^
            """),
        Mistake(
            "version: 1\ncontrol: {port: 80}",
            """
            a.yaml:2:11: control.port: the port belongs in `listen`
                2 | control: {port: 80}
                  |           ^
            """),
        Mistake(
            "version: 1\nmqtt: []",
            """
            a.yaml:2:1: mqtt: `mqtt` is not supported by this version
                2 | mqtt: []
                  | ^
            """),
        Mistake(
            "version: 1\nversion: 1",
            """
            a.yaml:2:1: version: `version` is set a second time; the first is in line 1
                2 | version: 1
                  | ^
            """),
        Mistake(
            "version: 1\nfolders:\n- {name: a, path: /a, quiet_for: 2s, upload_to: [n]}\n"
                + "destinations: {n: {type: tus, url: \"http://[::1]:80/\"}}",
            """
            a.yaml:3:23: folders[0].quiet_for: `quiet_for` belongs under `settle`
                3 | - {name: a, path: /a, quiet_for: 2s, upload_to: [n]}
                  |                       ^
            """),
        Mistake(
            "version: 1\nfolders:\n- {name: a, path: /a, policy: {order: newest-first}, upload_to: [n]}\n"
                + "destinations: {n: {type: tus, url: \"http://[::1]:80/\"}}",
            """
            a.yaml:3:23: folders[0].policy: its own rules belong beside its other keys, without `policy`: `windows`, `bandwidth`, `quotas` …
                3 | - {name: a, path: /a, policy: {order: newest-first}, upload_to: [n]}
                  |                       ^
            """),
        Mistake(
            "version: 1\nfolders:\n- {}",
            """
            a.yaml:3:3: folders[0].name: `name` is missing; give the folder a name for lists and logs
                3 | - {}
                  |   ^
            a.yaml:3:3: folders[0].path: `path` is missing; name the folder to watch
                3 | - {}
                  |   ^
            a.yaml:3:3: folders[0].upload_to: `upload_to` is missing; name at least one destination
                3 | - {}
                  |   ^
            """),
        Mistake(
            "version: 1\nfolders:\n- {name: a, path: /a, upload_to: [nsa]}\n"
                + "destinations:\n  nas: {type: tsu}\n  b: {}\n  c: {type: tus, hedaers: {}}",
            """
            a.yaml:3:35: folders[0].upload_to[0]: no destination is called `nsa`; did you mean `nas`?
                3 | - {name: a, path: /a, upload_to: [nsa]}
                  |                                   ^
            a.yaml:5:15: destinations.nas.type: no type of destination is called `tsu`; did you mean `tus`?
                5 |   nas: {type: tsu}
                  |               ^
            a.yaml:6:3: destinations.b: `type` is missing; there are: tus, directory
                6 |   b: {}
                  |   ^
            a.yaml:7:6: destinations.c.url: `url` is missing; the address that creates uploads
                7 |   c: {type: tus, hedaers: {}}
                  |      ^
            a.yaml:7:18: destinations.c.hedaers: no setting is called `hedaers` here; did you mean `headers`?
                7 |   c: {type: tus, hedaers: {}}
                  |                  ^
            """),
    ]
}
