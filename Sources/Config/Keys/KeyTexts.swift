/// The default and the meaning of each key, in words: `path | default | meaning`. `required` is the default of a key
/// that must be set.
///
/// The tables of docs/configuration.md have the same words; a test compares the two. It is one text, because a table of
/// values would need a kilobyte of code for every ten keys.
enum KeyTexts {
    static let table = """
        version | required | version of the configuration format
        state | `/var/lib/sluice` | folder of the queue and the lock
        staging |  | where Sluice keeps files until they are uploaded
        folders | none | the folders to watch
        destinations | none | where files go
        policy |  | when uploads may run, and which
        control |  | how other programs reach the daemon
        metrics | none | files with the daemon's state, for programs that do not ask the API
        retention |  | how long finished uploads stay in the lists
        hooks | none | programs and URLs that get events
        folders[].name | required | the name in lists, logs and templates; unique; not `-`, which stands for files \
        from `sluice add -`
        folders[].path | required | the folder to watch; while it does not exist it is absent, and Sluice looks for \
        it every 10 s; with wildcards it stands for one folder on each card
        folders[].recursive | `true` | watch the folders inside it too
        folders[].upload_to | required | destinations; each file goes to all of them, to those whose condition holds, or to the first of several that has it
        folders[].include | every file | files to pick up
        folders[].exclude | nothing | exceptions to `include`
        folders[].min_size | none | smaller files are ignored
        folders[].max_size | none | larger files are ignored
        folders[].min_age | none | younger files wait until they are this old; `run --once` leaves them for the next \
        run
        folders[].max_age | none | older files are ignored
        folders[].existing | `upload` | what to do with files that exist when the folder is watched for the first \
        time
        folders[].empty | `skip` | what to do with files of 0 bytes
        folders[].duplicates | `upload` | what to do with files whose content was uploaded under another name; with \
        `skip` the source stays
        folders[].settle |  | when a file counts as finished
        folders[].watch | `auto` | `poll` scans the folder repeatedly instead of asking the kernel for events
        folders[].group | each file is uploaded alone | files that travel together
        folders[].staging |  | how files of this folder are staged
        folders[].staging.copy | as under `staging` | how copies of this folder's files are made
        folders[].export | none | a command that makes the file to upload
        folders[].after_upload |  | what to do with the source when all destinations have it, verified
        folders[].release_unsure | `keep` on a disk of this machine; `after 10m` on NFS, SMB, FUSE, overlay and file \
        systems that Sluice does not know | what to do with a verified source that is due to be removed if Sluice \
        cannot know whether a program has it open
        folders[].require |  | what must be there before Sluice trusts the folder
        folders[].removable | `auto` | whether Sluice tells you when the folder's disk may be unplugged
        folders[].remote_name | `{folder}/{relative}` | the name at the destination
        folders[].metadata | none | sent with the file
        folders[].key | none | a name of your own for the upload, for lists and other programs
        folders[].context | none | stored and shown with the upload, not sent; 16 pairs, 1 KiB each, 8 KiB together
        folders[].priority | `0` | higher goes first
        folders[].order | the destination's, else that of `policy` | which of this folder's files goes first
        folders[].concurrency | no limit of its own | parallel uploads from this folder
        folders[].retry | as under `policy` | waits after failures, for this folder; a destination's own `retry` \
        goes before it
        folders[].windows | always | when files of this folder may be sent
        folders[].bandwidth | no limit | rate limit for all files of this folder together
        folders[].quotas | no limit | how much of this folder may be sent, to any destination
        folders[].pause | none | conditions under which no file of this folder is sent
        folders[].metered | `allow` | whether files of this folder may use metered networks
        folders[].metered_unknown | `metered` | how to treat a network whose cost is unknown
        folders[].networks | none | what you know about networks; the first item that applies and decides wins
        folders[].expires_after | never | files found longer ago are not sent any more
        folders[].busy | none | nothing of this folder is sent while this says that the machine is busy
        folders[].before_upload | none | a program that Sluice asks before each upload of this folder
        folders[].settle.quiet_for | 1s after a close, if no program has the file open; 10s without a close, or if \
        the kernel cannot say whether the file is open; 30s without events | how long the file must not change
        folders[].settle.writers | `lease` | how to find out whether a program has the file open for writing: \
        `lease` asks the kernel; `proc` searches all open files where the kernel does not answer; `skip` does \
        neither
        folders[].settle.marker | none | a file that must exist beside each finished file: `"{name}.done"`
        folders[].settle.report_after | `1h` | a file that has not settled after this time is reported
        folders[].settle.container | `skip` | whether a recording must be complete by its own headers
        folders[].settle.broken | `upload` | with `container: check`: what to do with a recording that stays \
        incomplete
        folders[].settle.broken_after | `1h` | with `broken: upload`: how long an incomplete recording must be \
        unchanged before it is picked up all the same
        folders[].group.by | required | what makes a group: one name with several endings, a directory, or a list of \
        files
        folders[].group.wait | `5s`; `1m` for a directory | how long a finished file waits for another file of its group
        folders[].group.sidecars | `xml`, `srt`, `thm`, `json` | files that belong to another file and are not \
        uploaded without it
        folders[].group.manifest | required with `by: manifest` | the names of the files that list the others
        folders[].export.command | required | a program and its arguments, with `{input}` and `{output}` among them
        folders[].export.output | required | the name of the file that it makes
        folders[].export.timeout | `1d` | when Sluice kills it
        folders[].export.network | `any` | whether the program gets a proxy that obeys `policy`, and is held to it \
        (`policy`), or opens sockets of its own (`any`)
        folders[].export.ports | `[80, 443]` | the ports of other machines that it may connect to; with `network: policy`
        folders[].export.hosts | all | the names or addresses that it may connect to; with `network: policy`
        folders[].export.min_size | 1 byte | a smaller result is a failure
        folders[].after_upload.source | `keep` | whether the source stays, is deleted or is moved
        folders[].after_upload.to | required for `move` | the target of `move`; outside every watched folder
        folders[].after_upload.for | for ever | with `keep`: remove a source this long after its last upload was \
        verified
        folders[].after_upload.until_free | no such rule | with `keep`: while the folder's disk has less free space, \
        remove the oldest verified sources
        folders[].require.file | none | a file that must exist in it
        folders[].require.mount | the mount point that `/etc/fstab` names for `path` | what must be mounted, at \
        `path` itself or above it; `/` for nothing; with wildcards as in `path` for any card
        destinations.*.type | required | the protocol
        destinations.*.concurrency | as under `policy` | parallel uploads to it
        destinations.*.order | that of `policy` | which file goes there first, for folders without an order of their \
        own
        destinations.*.retry | as under `policy` | waits after failures, for this destination
        destinations.*.requests | no limit | how many requests may begin, evenly spread
        destinations.*.dscp | no mark | how packets are marked for routers
        destinations.*.windows | always | when bytes may be sent there
        destinations.*.bandwidth | no limit | rate limit for all transfers to it together
        destinations.*.quotas | no limit | how much may be sent there
        destinations.*.pause | none | conditions under which nothing is sent there
        destinations.*.metered | `allow` | whether bytes to it may use metered networks
        destinations.*.metered_unknown | `metered` | how to treat a network whose cost is unknown
        destinations.*.networks | none | what you know about networks; the first item that applies and decides wins
        destinations.*.expires_after | never | files found longer ago are not sent there any more
        destinations.*.busy | none | nothing is sent there while this says that the machine is busy
        destinations.*.before_upload | none | a program that Sluice asks before each upload there
        SECRET.file |  | a file with the secret; Sluice removes one newline at its end, and warns if everybody can \
        read the file
        SECRET.env |  | an environment variable of the daemon
        SECRET.credential |  | a systemd credential: `LoadCredential=NAME:/path` in the unit
        SECRET.command |  | a program by its absolute path, and its arguments; it prints the secret
        SECRET.network | `any` | with `command`, at a destination: whether the connections of the program obey the policy \
        of that destination (`policy`), or are its own (`any`)
        SECRET.ports | `[80, 443]` | with `network: policy`: the ports that the program may connect to
        SECRET.hosts | every host | with `network: policy`: the only hosts that the program may connect to
        SECRET.literal |  | the secret itself; Sluice warns, and refuses it if group or others can read the \
        configuration file
        policy.concurrency |  | parallel uploads
        policy.order | `newest-first` | which file of a folder goes first, at equal priority
        policy.retry |  | waits after failures: each twice as long as the one before, partly random
        policy.windows | always | when any byte may be sent to any destination
        policy.bandwidth | no limit | rate limit for all transfers together
        policy.quotas | no limit | how much may be sent in all
        policy.pause | none | conditions under which nothing is sent that they describe
        policy.metered | `allow` | whether uploads may use metered networks
        policy.metered_unknown | `metered` | how to treat a network whose cost is unknown
        policy.networks | none | what you know about networks; the first item that applies and decides wins
        policy.expires_after | never | files found longer ago are not sent any more
        policy.busy | none | nothing is sent while this says that the machine is busy
        policy.before_upload | none | a program that Sluice asks before each upload
        concurrency[].at_most | required | how many uploads may run at once
        concurrency[].when | always | of which uploads, and when: a condition, or a list of conditions of which one is \
        enough
        policy.concurrency.total | `3` | over all destinations
        policy.concurrency.per_destination | `2`, or `total` if that is smaller | to each destination
        policy.retry.first | `5s` | the first wait
        policy.retry.max | `30m` | the longest wait
        policy.retry.attempts | no limit | how often a destination may refuse one file
        policy.retry.give_up_after | no limit | an upload that fails for this long, while the destination accepts no \
        byte of it, ends as `failed`
        destinations.*.retry.first | as under `policy` | the first wait
        destinations.*.retry.max | as under `policy` | the longest wait
        destinations.*.retry.attempts | as under `policy` | how often a destination may refuse one file
        destinations.*.retry.give_up_after | as under `policy` | an upload that fails for this long, while the \
        destination accepts no byte of it, ends as `failed`
        folders[].retry.first | as under `policy` | the first wait
        folders[].retry.max | as under `policy` | the longest wait
        folders[].retry.attempts | as under `policy` | how often a destination may refuse one file
        folders[].retry.give_up_after | as under `policy` | an upload that fails for this long, while the \
        destination accepts no byte of it, ends as `failed`
        windows[].between | required | the window, in an item that excludes days
        windows[].except | none | days on which this window does not begin
        bandwidth[].name | none | the name of the limit in messages
        bandwidth[].limit | required | bytes (`MB/s`, `KiB/s`) or bits (`Mbit/s`) a second; `0` sends nothing
        bandwidth[].when | always | what the limit applies to, and when: a condition, or a list of conditions of which \
        one is enough
        quotas[].name | required with `when` | the name of the count; unique in its list
        quotas[].when | everything | what counts: a condition, or a list of conditions of which one is enough
        quotas[].per | required | the period after which the count starts again
        quotas[].starts_on | `mon`, `1` | the first day of the period; in a month without that day, its last day
        quotas[].bytes | no limit | all traffic in `direction`: sent bytes with headers, queries and \
        retransmissions; received bytes with headers, acknowledgements and handshakes. At least 288 KiB; `0` sends \
        nothing
        quotas[].files | no limit | number of files that may begin
        quotas[].count | `ours` | whose bytes count: those of Sluice, or those of every program
        quotas[].direction | `sent` | which bytes count: sent, received, or the sum. Most mobile contracts charge \
        the sum
        pause[].name | required | the name of the rule in messages; unique in its list
        pause[].when | required | what is not sent, and when: a condition, or a list of conditions of which one is enough
        pause[].override | `allow` | `never`: `sluice allow` makes no exception from it
        upload_to[].to | required, or `first_of` | the destination
        upload_to[].first_of | none | destinations of which one is enough, in the order in which they are tried
        upload_to[].after | required with `first_of` | how long a file waits for each destination before the next may take \
        over
        upload_to[].if | required with `to` | which files go there: a condition about the file, or a list of conditions of \
        which one is enough
        when.between | any time | times of the day
        when.except | none | days on which the windows of `between` do not begin
        when.network | any | names from `policy.networks`; bytes would leave over one of them
        when.metered | any | whether the network is metered
        when.interface | any | an interface that carries the bytes: `eth0`, `wwan*`
        when.ssid | any | the exact name of the Wi-Fi
        when.gateway | any | address of the router on the route
        when.roaming | any | whether the modem behind it roams
        when.lan | any | whether the destination is in a network of this machine's interface, without a router between
        when.on_battery | any | whether the machine runs on its battery
        when.battery_below | any | the battery has less than this
        when.hotter_than | any | the hottest sensor of the machine shows more degrees Celsius than this
        when.folder | any | folders; for a folder with wildcards, all of its cards
        when.destination | any | destinations
        when.larger_than | any | the file has more bytes than this
        when.smaller_than | any | the file has fewer bytes than this
        when.kind | any | what the file contains, by its name
        when.longer_than | any | the video or sound recording is longer than this
        when.not | nothing | a condition that must not hold; of a list, none may hold
        networks[].name | none | a name for conditions; items with the same name are one network
        networks[].interface | any | the interface, as `ip link` names it: `eth0`, `wwan*`
        networks[].ssid | any | the exact name of the Wi-Fi
        networks[].gateway | any | address of the router on the route: `"0c:5b:8f:27:9a:64"`
        networks[].subnet | any | the interface has an address in it
        networks[].roaming | any | whether the modem behind it roams; if the modem does not report that, an item \
        that forbids or costs assumes the worse
        networks[].metered | not set | whether bytes there cost something
        networks[].allowed | not set | whether anything may be sent there at all
        busy.file | none | busy while anything exists under this name
        busy.command | none | a program by its absolute path, and its arguments: exit status 0 means busy, 1 means \
        not busy
        busy.every | `30s` | how often the command runs while an upload waits or runs
        busy.timeout | `10s` | when Sluice kills the command
        before_upload.command | required | a program by its absolute path, and its arguments
        before_upload.timeout | `10s` | when Sluice kills the program, which counts as the answer to wait
        staging.path | `staging` in the state folder | the staging folder; used for nothing else, and outside every \
        watched folder
        staging.copy | `auto` | `auto` shares blocks where the file system can, else copies; `reflink` shares \
        blocks, or waits and says why; `in-place` makes no copy
        staging.memory | `refuse` | whether the staging folder may be on a file system in memory (tmpfs, ramfs)
        staging.max_size | no limit | most bytes that all staged copies may take, by file size; further files wait
        staging.keep_free | `1 GB` | space that stays free on its file system
        staging.concurrency | `2` | parallel copies; one export may run beside them
        control.socket | `/run/sluice/control.sock` | the socket of the command line
        control.listen | none | where the API listens on TCP; with port 0 the system chooses the port, and the log \
        names it
        control.tokens | required with `listen` | who may use the API over TCP, and its web page
        control.tokens[].name | required | who has the token, for the log; unique
        control.tokens[].role | `operate` | `operate` may see and do everything, `view` may change nothing
        control.tokens[].secret | required | sent as `Authorization: Bearer …`, or typed into the web page
        control.tls | required unless `listen` is an address of 127.0.0.0/8 or `::1` | the certificate for HTTPS
        control.tls.certificate | required | the certificate, followed by those that lead to the authority
        control.tls.key | required | its private key
        control.web | `true` | whether the address also serves the web page
        control.thumbnails | `true` | whether the page shows small pictures of videos and photos, which ffmpeg makes
        control.hosts | none | names and addresses that requests may use with any port, besides those that Sluice \
        listens on
        control.trusted_proxies | none | proxies whose `X-Forwarded-For` Sluice trusts: limits and the log use the \
        address in it
        control.insecure_http | `false` | permits other machines to send tokens without TLS
        metrics.textfile | none | file with the content of `/metrics`, for the node exporter
        metrics.status_file | none | file with the content of `GET /v1/status`, as JSON
        metrics.every | `30s` | how often Sluice writes them
        retention.completed | `7d` | in the list `completed`; the newest 10,000 at most
        retention.failed | `30d` | in the list `failed`, with the staged copy; the newest 1,000 at most
        retention.cancelled | `1h` | in the list `cancelled`, and until the destination has removed what it had
        retention.history | `90d` | in the history, counted from the end of the upload
        hooks[].name | `hook-1` for the first, and so on | the name in `status`, logs and `sluice hook`; unique
        hooks[].on | `[completed, failed]` | the events that it gets
        hooks[].folders | all | only events of these folders
        hooks[].destinations | all | only events of these destinations
        hooks[].command | this or `url` | a program by its absolute path, and its arguments; it reads the event from \
        its standard input
        hooks[].url | this or `command` | where Sluice posts the event
        hooks[].headers | none | headers of the post: texts, or secrets; with `url`
        hooks[].secret | none | signs the post; with `url`
        hooks[].ca_file | the system's | PEM certificates to trust, for a server with a certificate of its own; with \
        a `url` that begins with `https://`
        hooks[].network | `policy` with `url`, `any` with `command` | with `url`: whether notices obey `policy`, or are \
        sent at any time and speed over any network that is not forbidden; with `command`: whether the program gets a \
        proxy that obeys `policy`, and is held to it, or opens sockets of its own
        hooks[].ports | `[80, 443]` | the ports of other machines that the program may connect to; with `command` and \
        `network: policy`
        hooks[].hosts | all | the names or addresses that the program may connect to; with `command` and `network: policy`
        hooks[].timeout | `30s` | time limit of one notice
        hooks[].retry |  | waits after failures: each twice as long as the one before, partly random
        hooks[].retry.first | `5s` | the first wait
        hooks[].retry.max | `30m` | the longest wait
        hooks[].retry.attempts | no limit | attempts at one notice before Sluice drops it
        hooks[].give_up_after | `1d` | Sluice drops a notice that it could not deliver for this long
        """
}
