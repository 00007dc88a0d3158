extension MistakeTests {
    /// One line each, after `version: 1`; the answer from the column on, up to the end of its first line or less.
    static let values: [Mistake] = [
        Mistake("state: ~/x", "8: state: takes an absolute path, not `~/x`; `~` and variables are not expanded"),
        Mistake("state: x", "8: state: takes an absolute path, not `x`; begin it with `/`"),
        Mistake("state: /a/../b", "8: state: has `..` in it"),
        Mistake("state: [a]", "8: state: takes an absolute path, not a list"),
        Mistake("state:", "7: state: has no value; it takes an absolute path"),
        Mistake("state: ~", "8: state: has no value; it takes an absolute path"),
        Mistake("state: \"/a\\nb\"", "8: state: has a line break or another control character in it"),
        Mistake("staging: 5", "10: staging: takes a mapping, like `{path: …}`, not a single value"),
        Mistake(
            "staging: {max_size: 20}",
            "21: staging.max_size: takes an amount with its unit, like `20 GB` or `8 MiB`, not 20 without a unit"
        ),
        Mistake("staging: {max_size: 20 Gb}", "24: staging.max_size: `Gb` is not a unit of bytes; did you mean `GB`?"),
        Mistake(
            "staging: {max_size: -1 GB}",
            "21: staging.max_size: takes an amount with its unit, like `20 GB` or `8 MiB`, not `-1 GB`"),
        Mistake("staging: {max_size: 99999999 TiB}", "21: staging.max_size: is more than 8 EiB"),
        Mistake(
            "staging: {copy: reflnk}",
            "17: staging.copy: takes one of auto, copy, reflink, in-place, not `reflnk`; did you mean `reflink`?"),
        Mistake(
            "policy: {order: newest}",
            "17: policy.order: takes one of newest-first, oldest-first, smallest-first, largest-first, mixed, not `newest`; did you mean `newest-first`?"
        ),
        Mistake(
            "policy: {retry: {first: 1:30}}",
            "25: policy.retry.first: takes a length of time with its unit, like `90s`, `1h30m` or `500ms`, not `1:30` (YAML 1.1 reads it in base 60, which is 90)"
        ),
        Mistake(
            "policy: {retry: {first: 90}}",
            "25: policy.retry.first: takes a length of time with its unit, like `90s`, `1h30m` or `500ms`, not 90 without a unit"
        ),
        Mistake(
            "policy: {retry: {first: 3 parsecs}}",
            "27: policy.retry.first: `parsecs` is not a unit of time; there are: ms, s, m (minutes), h, d"),
        Mistake("policy: {retry: {first: 30m1h}}", "25: policy.retry.first: has its units out of order"),
        Mistake(
            "policy: {retry: {first: 2d}}", "25: policy.retry.first: takes a length of time from 100ms to 1d, not `2d`"),
        Mistake(
            "policy: {retry: {first: 1h}}",
            "25: policy.retry.first: the longest wait (30m) is shorter than the first (1h)"),
        Mistake(
            "policy: {retry: {attempts: 010}}",
            "28: policy.retry.attempts: takes a whole number from 1 to 1000000, not `010` (YAML 1.1 reads it as octal, which is 8)"
        ),
        Mistake(
            "policy: {concurrency: {total: 0}}",
            "31: policy.concurrency.total: takes a whole number from 1 to 64, not `0`"),
        Mistake(
            "policy: {concurrency: 3}", "23: policy.concurrency: takes a mapping, like `{total: …}`, not a single value"
        ),
        Mistake(
            "metrics: {textfile: /m/sluice.txt}",
            "21: metrics.textfile: does not end in `.prom`: the node exporter reads no other file"),
        Mistake(
            "metrics: {textfile: /m/a.prom, status_file: /m/./a.prom}",
            "45: metrics.status_file: is the `textfile` as well; name another"),
        Mistake(
            "metrics: {every: 30s}",
            "18: metrics.every: belongs to `textfile` or `status_file`; add one of them, or take this out"),
        Mistake(
            "metrics: {status_file: /m/s.json, every: 1s}",
            "42: metrics.every: takes a length of time from 5s to 1h, not `1s`"),
        Mistake(
            "metrics: {textfile: a.prom}",
            "21: metrics.textfile: takes an absolute path, not `a.prom`; begin it with `/`"),
        Mistake(
            "metrics: {port: 9090}",
            "11: metrics.port: no setting is called `port` here; allowed here: textfile, status_file, every"),
        Mistake(
            "retention: {completed: 9s}",
            "24: retention.completed: takes a length of time from 10s to 3660d, not `9s`"),
        Mistake(
            "retention: {failed: 30s}", "21: retention.failed: takes a length of time from 1m to 3660d, not `30s`"),
        Mistake(
            "retention: {history: 90}",
            "22: retention.history: takes a length of time with its unit, like `90s`, `1h30m` or `500ms`, not 90 without a unit"
        ),
        Mistake(
            "retention: {source: keep}",
            "13: retention.source: what happens to a source is set in its folder, under `after_upload`"),
        Mistake(
            "webhooks: []",
            "1: webhooks: an address that receives events is a hook with a `url`, under `hooks`"),
        Mistake(
            "policy: {before_upload: {command: [a]}}",
            "36: policy.before_upload.command: takes the program by its absolute path; no shell looks for it"),
        Mistake(
            "destinations: {n: {type: tus, url: \"http://h/\", before_upload: {timeout: 5s}}}",
            "64: destinations.n.before_upload.command: `command` is missing"),
        Mistake(
            "destinations: {n: {type: tus, url: \"http://h/\", before_upload: {command: [may-go]}}}",
            "75: destinations.n.before_upload.command: takes the program by its absolute path; no shell looks for it"),
        Mistake("hooks: {a: 1}", "8: hooks: takes a list of hooks, not a mapping"),
        Mistake(
            "hooks: [{}]",
            "9: hooks[0].command: names neither a command nor an address; write `command: [/usr/local/bin/tell]` or `url: https://example.org/hook`"
        ),
        Mistake(
            "hooks: [{command: [/a], url: \"http://h/\"}]",
            "30: hooks[0].url: names a command and an address; make two hooks"),
        Mistake(
            "hooks: [{command: [tell]}]",
            "20: hooks[0].command: takes the program by its absolute path; no shell looks for it"),
        Mistake(
            "hooks: [{command: [/a], secret: {env: A}}]",
            "33: hooks[0].secret: belongs to `url`; a command sends nothing by itself"),
        Mistake(
            "hooks: [{command: [/a], ports: [80]}]",
            "32: hooks[0].ports: has no effect without `network: policy`; add that, or remove it"),
        Mistake(
            "hooks: [{command: [/a], network: policy, hosts: []}]",
            "49: hooks[0].hosts: names no host, so the program could connect to nothing; remove it for all"),
        Mistake(
            "hooks: [{command: [/a], network: policy, ports: []}]",
            "49: hooks[0].ports: names no port, so the program could connect to nothing; remove it for 80 and 443"),
        Mistake(
            "hooks: [{url: \"http://h/\", hosts: [a]}]",
            "35: hooks[0].hosts: belongs to `command`; a `url` names its own server"),
        Mistake(
            "hooks: [{command: [/a], network: policy, hosts: [\"http://a\"]}]",
            "50: hooks[0].hosts[0]: takes a host like `nas.example`, or an address like `192.0.2.7`, without scheme and port, not `http://a`"
        ),
        Mistake(
            "hooks: [{on: [progress], command: [/a]}]",
            "15: hooks[0].on[0]: is not sent to hooks, because it occurs twice a second; `sluice events` and `/v1/events` follow it"
        ),
        Mistake(
            "hooks: [{on: [complete], command: [/a]}]",
            "15: hooks[0].on[0]: no event is called `complete`; did you mean `completed`?"),
        Mistake(
            "hooks: [{on: [], command: [/a]}]",
            "14: hooks[0].on: lists no event, so the hook would never run; remove it for completed, failed"),
        Mistake(
            "hooks: [{command: [/a], folders: [door]}]",
            "35: hooks[0].folders[0]: no folder is called `door`; there is none"),
        Mistake(
            "hooks: [{command: [/a], destinations: [nas]}]",
            "40: hooks[0].destinations[0]: no destination is called `nas`; there is none"),
        Mistake(
            "hooks: [{command: [/a]}, {name: hook-1, command: [/a]}]",
            "33: hooks[1].name: another hook is called `hook-1`, at a.yaml:2:9"),
        Mistake(
            "hooks: [{url: \"http://h/\", headers: {Webhook-Id: \"1\"}}]",
            "38: hooks[0].headers.Webhook-Id: is set by Sluice; remove it"),
        Mistake(
            "hooks: [{url: \"http://h/\", headers: {\"a(b)\": \"1\"}}]",
            "38: hooks[0].headers: takes a header's name: 1 to 64 letters, digits, `-` and `_`, without space or colon; "
                + "what is written here is not shown, since it may be a secret"
        ),
        Mistake(
            "hooks: [{url: \"http://h/\", ca_file: /c.pem}]",
            "37: hooks[0].ca_file: has no effect: `url` begins with `http://`; write `https://` there, or take this out"
        ),
        Mistake(
            "hooks: [{command: [/a], timeout: 1h}]",
            "34: hooks[0].timeout: takes a length of time from 100ms to 10m, not `1h`"),
        Mistake(
            "hooks: [{url: \"http://h/\", network: all}]",
            "37: hooks[0].network: takes `policy` or `any`, not `all`"),
        Mistake(
            "hooks: [{command: [/a], retry: {first: 1h}}]",
            "40: hooks[0].retry.first: the longest wait (30m) is shorter than the first (1h)"),
        Mistake("folders: {a: 1}", "10: folders: takes a list of folders, not a mapping"),
        Mistake("folders: [a]", "11: folders[0]: takes a mapping, like `{name: …}`, not a single value"),
        Mistake("folders: [{name: no}]", "11: folders[0].path: `path` is missing"),
        Mistake(
            "folders: [{name: no, path: /a, upload_to: []}]",
            "18: folders[0].name: takes a name of 1 to 64 letters, digits, `_`, `.` or `-`, and a bare `no` is ambiguous: YAML 1.1 reads it as `false`; write `\"no\"`"
        ),
        Mistake(
            "folders: [{name: \"a b\", path: /a, upload_to: []}]",
            "18: folders[0].name: takes a name of 1 to 64 letters"),
        Mistake(
            "folders: [{name: a, path: /a, upload_to: []}]",
            "42: folders[0].upload_to: names no destination; a folder needs at least one"),
        Mistake(
            "folders: [{name: a, path: /a, upload_to: {nas: 1}}]",
            "42: folders[0].upload_to.to: `to` is missing; name the destination, like `{to: nas, if: {kind: video}}`"),
        Mistake(
            "folders: [{recursive: on, name: a, path: /a, upload_to: []}]",
            "23: folders[0].recursive: takes `true` or `false`, not `on` (YAML 1.1 reads it as `true`)"),
        Mistake(
            "folders: [{recursive: \"true\", name: a, path: /a, upload_to: []}]",
            "23: folders[0].recursive: takes `true` or `false`, not a text; leave the quotes out"),
        Mistake(
            "folders: [{include: ['*.{a,b}'], name: a, path: /a, upload_to: []}]",
            "25: folders[0].include[0]: has braces, which are not expanded"),
        Mistake(
            "folders: [{include: ['[a'], name: a, path: /a, upload_to: []}]",
            "22: folders[0].include[0]: has a `[` without its `]`"),
        Mistake(
            "folders: [{include: ['!*.tmp'], name: a, path: /a, upload_to: []}]",
            "22: folders[0].include[0]: begins with `!`; put unwanted files under `exclude`"),
        Mistake(
            "folders: [{remote_name: \"ä{nmae}\", name: a, path: /a, upload_to: []}]",
            "27: folders[0].remote_name: no placeholder is called `{nmae}`; did you mean `{name}`?"),
        Mistake(
            "folders: [{remote_name: \"x\\t{nmae}\", name: a, path: /a, upload_to: []}]",
            "25: folders[0].remote_name: no placeholder is called"),
        Mistake(
            "folders: [{remote_name: {name}, name: a, path: /a, upload_to: []}]",
            "25: folders[0].remote_name: takes a text that may hold placeholders, like `{folder}/{name}`, not a mapping; a text that begins with `{` needs quotes"
        ),
        Mistake(
            "folders: [{remote_name: x.mp4, name: a, path: /a, upload_to: []}]",
            "25: folders[0].remote_name: gives every file the same name; put `{name}` in it"),
        Mistake(
            "folders: [{remote_name: '{sha256}.mp4', name: a, path: /a, upload_to: []}]",
            "25: folders[0].remote_name: uses `{sha256}`, which has no value when Sluice picks a file up; only the target of a `move` can use it"
        ),
        Mistake(
            "folders: [{metadata: {n: 'x{id}'}, name: a, path: /a, upload_to: []}]",
            "26: folders[0].metadata.n: uses `{id}`, which has no value"),
        Mistake(
            "folders: [{remote_name: '', name: a, path: /a, upload_to: []}]",
            "25: folders[0].remote_name: is empty; it takes a text that may hold placeholders, like `{folder}/{name}`"),
        Mistake(
            "folders: [{release_unsure: later, name: a, path: /a, upload_to: []}]",
            "28: folders[0].release_unsure: takes `keep`, `delete`, or a length of time like `after 10m`, not `later`"),
        Mistake(
            "folders: [{release_unsure: after 10, name: a, path: /a, upload_to: []}]",
            "28: folders[0].release_unsure: takes a length of time with its unit"),
        Mistake(
            "folders: [{after_upload: {to: '/x/{name}'}, name: a, path: /a, upload_to: []}]",
            "31: folders[0].after_upload.to: belongs to `source: move`; add it"),
        Mistake(
            "folders: [{after_upload: {source: move}, name: a, path: /a, upload_to: []}]",
            "26: folders[0].after_upload.to: `to` is missing; `source: move` needs a target"),
        Mistake(
            "folders: [{after_upload: {source: move, to: 'x/{name}'}, name: a, path: /a, upload_to: []}]",
            "45: folders[0].after_upload.to: takes an absolute path that may hold placeholders"),
        Mistake(
            "folders: [{settle: {marker: x}, name: a, path: /a, upload_to: []}]",
            "29: folders[0].settle.marker: takes a name with `{name}` or `{stem}` in it, like `\"{name}.done\"`"),
        Mistake(
            "folders: [{settle: {marker: 'a/{name}'}, name: a, path: /a, upload_to: []}]",
            "29: folders[0].settle.marker: takes a name with `{name}`"),
        Mistake(
            "folders: [{settle: {broken: wait}, name: a, path: /a, upload_to: []}]",
            "29: folders[0].settle.broken: belongs to `container: check`; add that, or take this out"),
        Mistake(
            "folders: [{settle: {broken_after: 2h, container: check, broken: wait}, name: a, path: /a, upload_to: []}]",
            "35: folders[0].settle.broken_after: belongs to `broken: upload`"),
        Mistake(
            "folders: [{settle: {container: yes}, name: a, path: /a, upload_to: []}]",
            "32: folders[0].settle.container: takes"),
        Mistake(
            "folders: [{require: {file: ../x}, name: a, path: /a, upload_to: []}]",
            "28: folders[0].require.file: takes a name or a path below the folder"),
        Mistake(
            "folders: [{require: {mount: /b}, name: a, path: /a, upload_to: []}]",
            "29: folders[0].require.mount: `/a` does not lie below `/b`"),
        Mistake(
            "folders: [{max_size: 1 B, min_size: 2 B, name: a, path: /a, upload_to: []}]",
            "22: folders[0].max_size: is less than `min_size`: no file would be taken"),
        Mistake(
            "folders: [{include: ['clip-[a-c][z-a].mp4'], name: a, path: /a, upload_to: []}]",
            "34: folders[0].include[0]: has a range that runs backwards: write `a-z`"),
        Mistake(
            "folders: [{remote_name: '../{name}', name: a, path: /a, upload_to: []}]",
            "25: folders[0].remote_name: begins with `/`, or has `.` or `..` in it; names are relative to the destination"
        ),
        Mistake(
            "folders: [{remote_name: '/x/{name}', name: a, path: /a, upload_to: []}]",
            "25: folders[0].remote_name: begins with `/`"),
        Mistake(
            "folders: [{remote_name: 'x//{name}', name: a, path: /a, upload_to: []}]",
            "25: folders[0].remote_name: has an empty part, at `//` or after its last `/`; remove the `/`"),
        Mistake(
            "folders: [{remote_name: '{name}/', name: a, path: /a, upload_to: []}]",
            "25: folders[0].remote_name: has an empty part, at `//` or after its last `/`"),
        Mistake(
            "folders: [{remote_name: 'x{recorded:%Y%Q}/{name}', name: a, path: /a, upload_to: []}]",
            "39: folders[0].remote_name: no part of a time is called `%Q`; there are: %Y %y %m %d"),
        Mistake(
            "folders: [{remote_name: 'x{recorded:}/{name}', name: a, path: /a, upload_to: []}]",
            "37: folders[0].remote_name: has a format with nothing in it; there are: %Y"),
        Mistake(
            "folders: [{settle: {marker: '{stem}.mp4'}, include: ['*.MP4'], name: a, path: /a, upload_to: []}]",
            "29: folders[0].settle.marker: matches every file that `include` takes"),
        Mistake(
            "folders: [{settle: {marker: '{name}.mp4'}, include: ['*.mp4'], name: a, path: /a, upload_to: []}]",
            "29: folders[0].settle.marker: matches every file that `include` takes"),
        Mistake(
            "folders: [{group: {by: stem, sidecars: [mp4, jpg]}, include: ['*.mp4'], name: a, path: /a, upload_to: []}]",
            "40: folders[0].group.sidecars: match all files that `include` takes: no file is left for them to accompany"
        ),
        Mistake(
            "folders: [{group: {by: stem}, include: ['*.xml'], name: a, path: /a, upload_to: []}]",
            "19: folders[0].group: its sidecars match all files that `include` takes"),
        Mistake(
            "folders: [{group: {by: directory, sidecars: [xml]}, name: a, path: /a, upload_to: []}]",
            "45: folders[0].group.sidecars: belongs to `by: stem`; take it out, or set that"),
        Mistake(
            "folders: [{group: {by: directory, manifest: '*.md5'}, name: a, path: /a, upload_to: []}]",
            "45: folders[0].group.manifest: belongs to `by: manifest`; take it out, or set that"),
        Mistake(
            "folders: [{group: {by: directory}, recursive: false, name: a, path: /a, upload_to: []}]",
            "24: folders[0].group.by: needs `recursive: true`: without it no directory of the folder is read"),
        Mistake(
            "folders: [{group: {by: manifest, manifest: '*.part'}, name: a, path: /a, upload_to: []}]",
            "44: folders[0].group.manifest: `*.part` is the name of hidden or temporary files, which are never picked up"
        ),
        Mistake(
            "folders: [{group: {by: manifest, manifest: .list}, name: a, path: /a, upload_to: []}]",
            "44: folders[0].group.manifest: `.list` is the name of hidden or temporary files"),
        Mistake(
            "folders: [{group: {by: manifest, manifest: '*.md5'}, exclude: ['*.md5'], name: a, path: /a, upload_to: []}]",
            "44: folders[0].group.manifest: `*.md5` is excluded by `exclude: *.md5`, so no manifest is ever found"),
        Mistake(
            "folders: [{group: {by: manifest, manifest: []}, name: a, path: /a, upload_to: []}]",
            "44: folders[0].group.manifest: names no pattern; give one, like `\"*.md5\"`"),
        Mistake(
            "folders: [{group: {by: manifest}, name: a, path: /a, upload_to: []}]",
            "19: folders[0].group.manifest: `manifest` is missing; the name of the files that list the others"),
        Mistake(
            "folders: [{group: {by: manifest, manifest: 'a/*.md5'}, name: a, path: /a, upload_to: []}]",
            "44: folders[0].group.manifest: `a/*.md5` has a slash: a manifest is known by its name alone"),
        Mistake(
            "folders: [{group: {by: manifest, manifest: ['*.md5', '*']}, name: a, path: /a, upload_to: []}]",
            "44: folders[0].group.manifest: matches every file: no file is left to be listed"),
        Mistake(
            "folders: [{max_size: 0 B, name: a, path: /a, upload_to: []}]",
            "22: folders[0].max_size: is 0, so only empty files would be taken; remove it for no limit"),
        Mistake(
            "folders: [{export: {output: .., command: [/bin/cp, '{input}', '{output}']}, name: a, path: /a, upload_to: []}]",
            "29: folders[0].export.output: is not a valid name; it takes one like `{stem}.mp4`"),
        Mistake(
            "folders: [{export: {output: 'a/{name}', command: [/bin/cp, '{input}', '{output}']}, name: a, path: /a, upload_to: []}]",
            "29: folders[0].export.output: takes a name without `/`"),
        Mistake(
            "folders: [{max_age: 1h, min_age: 1h, name: a, path: /a, upload_to: []}]",
            "21: folders[0].max_age: is no more than `min_age`: no file would be taken"),
        Mistake(
            "folders: [{watch: inotify, name: a, path: /a, upload_to: []}]",
            "19: folders[0].watch: takes `auto` or `poll`, not `inotify`"),
        Mistake(
            "folders: [{metadata: {a b: x}, name: a, path: /a, upload_to: []}]",
            "23: folders[0].metadata.a b: takes a name of 1 to 64 printable ASCII characters"),
        Mistake(
            "destinations: {a: {type: tus, url: ftp://x}}",
            "36: destinations.a.url: takes an address like `https://nas.example/files`; it begins with neither"),
        Mistake("destinations: {a: {type: tus, url: \"https://\"}}", "45: destinations.a.url: has no valid host"),
        Mistake("destinations: {a: {type: tus, url: \"https://h:0/\"}}", "47: destinations.a.url: has no valid port"),
        Mistake("destinations: {a: {type: tus, url: \"https://h/#x\"}}", "36: destinations.a.url: has a `#`"),
        Mistake(
            "destinations: {a: {type: tus, url: \"https://h/\", parallel: 9}}",
            "60: destinations.a.parallel: takes a whole number from 1 to 8, not `9`"),
        Mistake(
            "destinations: {a: {type: tus, url: \"https://h/\", checksum: sha-1}}",
            "60: destinations.a.checksum: takes one of none, sha1, sha256, not `sha-1`; did you mean `sha1`?"),
        Mistake(
            "destinations: {a: 3}", "19: destinations.a: takes a mapping, like `{type: tus, …}`, not a single value"),
        Mistake(
            "control: {tokens: [{name: me, secret: {env: A}}]}", "19: control.tokens: has no effect without `listen`"),
        Mistake("control: {hosts: [nas]}", "18: control.hosts: has no effect without `listen`"),
        Mistake("control: {web: {}}", "16: control.web: takes `true` or `false`, not a mapping"),
        Mistake(
            "control: {listen: \"127.0.0.1:8484\"}",
            "10: control.tokens: `tokens` is missing; the API on TCP needs a token: `tokens: [{name: me, secret: {file: /etc/sluice/control.token}}]`"
        ),
        Mistake(
            "control: {token: {env: A}}",
            "11: control.token: tokens are a list: `tokens: [{name: me, secret: {file: /etc/sluice/control.token}}]`"),
        Mistake(
            "control: {listen: \":8484\", tokens: [{name: me, secret: {env: A}}]}",
            "19: control.listen: others on the network could read the tokens: add `tls: {certificate: …, key: …}`, listen on "
                + "127.0.0.1 behind a proxy that has a certificate, or permit it with `insecure_http: true`"),
        Mistake(
            "control: {listen: 8484, tokens: [{name: me, secret: {env: A}}]}",
            "19: control.listen: takes an address and a port, like `127.0.0.1:8484` or `:8484`, not `8484`"),
        Mistake(
            "control: {listen: \"::1:84\", tokens: [{name: me, secret: {env: A}}]}",
            "19: control.listen: takes an IPv6 address in brackets: [::1]:84"),
        Mistake(
            "control: {listen: \":84840\", tokens: [{name: me, secret: {env: A}}]}",
            "19: control.listen: takes an address and a port, like `127.0.0.1:8484` or `:8484`, not `:84840`"),
        Mistake(
            "control: {listen: \"127.0.0.1:84\", tokens: [{name: me, secret: {env: A}}], hosts: [\"nas:84\"]}",
            "83: control.hosts[0]: takes a name like `nas.example` or an address, without port, not `nas:84`"),
        Mistake(
            "control: {listen: \":84\", tokens: [{name: me, secret: {env: A}}], tls: {key: /k}}",
            "71: control.tls.certificate: `certificate` is missing; TLS needs both, as PEM files"),
        Mistake(
            "control: {listen: \"127.0.0.1:84\", tokens: [{secret: {env: A}}]}",
            "44: control.tokens[0].name: `name` is missing; it says in the log who did something, like `name: me`"),
        Mistake(
            "control: {listen: \"127.0.0.1:84\", tokens: [{name: me, role: admin, secret: {env: A}}]}",
            "61: control.tokens[0].role: takes `view` or `operate`, not `admin`"),
        Mistake(
            "control: {listen: \"127.0.0.1:84\", tokens: [{name: me, secret: {env: A}}, {name: me, secret: {env: B}}]}",
            "81: control.tokens[1].name: another token is called `me`, at a.yaml:2:45"),
        Mistake("control: {listen: \"127.0.0.1:84\", tokens: []}", "43: control.tokens: is empty; write `tokens: [{"),
        Mistake("control: {port: 84}", "11: control.port: the port belongs in `listen`"),
    ]
}
