extension MistakeTests {
    /// Like ``values``, for keys of `policy`, a destination and a folder.
    static let rules: [Mistake] = [
        Mistake(
            "folders: [{name: '-', path: /a, upload_to: []}]",
            "18: folders[0].name: is `-`, which is reserved for `sluice add -`; choose another name"),
        Mistake(
            "policy: {windows: []}",
            "19: policy.windows: lists no window, so nothing would ever be sent; remove it for no limit"),
        Mistake(
            "policy: {windows: 22:00-06:00}",
            "19: policy.windows: takes a list of windows, like `[\"22:00-06:00\"]`, not a single value"),
        Mistake(
            "policy: {windows: [25:00-06:00]}",
            "20: policy.windows[0]: takes a time of the day, with days before it if not all, like `22:00-06:00` or `mon-fri 18:00-08:00`, not `25:00-06:00`"
        ),
        Mistake(
            "policy: {windows: [08:00-08:00]}",
            "20: policy.windows[0]: is empty; `00:00-24:00` is the whole day"),
        Mistake(
            "policy: {windows: [24:00-08:00]}",
            "20: policy.windows[0]: begins at 24:00"),
        Mistake(
            "policy: {windows: ['sat,sunday 08:00-09:00']}",
            "20: policy.windows[0]: `sunday` is not a day; there are: mon, tue"),
        Mistake(
            "policy: {windows: [{except: [2026-12-24]}]}",
            "20: policy.windows[0].between: `between` is missing; name the time of the day"),
        Mistake(
            "policy: {windows: [{between: 08:00-09:00, except: [2026-02-29]}]}",
            "52: policy.windows[0].except[0]: there is no day `2026-02-29`"),
        Mistake(
            "policy: {windows: [{between: 08:00-09:00, until: 3}]}",
            "43: policy.windows[0].until: no setting is called `until` here; allowed here: between, except"),
        Mistake(
            "policy: {min_battery: 25%}",
            "10: policy.min_battery: is a condition now; under `pause`, write `- {name: low-battery, when: {battery_below: 25%}}`"
        ),
        Mistake(
            "policy: {pause: [{name: a, when: {battery_below: 0%}}]}",
            "50: policy.pause[0].when.battery_below: takes a share from 1% to 100%, like `30%`, not `0%`"),
        Mistake(
            "policy: {busy: /run/recording}",
            "16: policy.busy: takes `{file: /run/camera/recording}` or `{command: [/usr/local/bin/is-recording]}`, not a single value"
        ),
        Mistake(
            "policy: {busy: {every: 30s}}",
            "16: policy.busy: names neither a file nor a command; write `{file: /run/camera/recording}` or `{command: [/usr/local/bin/is-recording]}`"
        ),
        Mistake(
            "policy: {busy: {file: /run/a, command: [/bin/a]}}",
            "16: policy.busy: names a file and a command; keep one of the two"),
        Mistake(
            "folders: [{name: a, busy: {file: recording}, path: /a, upload_to: []}]",
            "34: folders[0].busy.file: takes an absolute path, not `recording`; begin it with `/`"),
        Mistake(
            "policy: {busy: {file: /run/a, every: 5s}}",
            "38: policy.busy.every: belongs to `command`; a file is watched, and needs no time"),
        Mistake(
            "policy: {busy: {file: /run/a, timeout: 5s}}",
            "40: policy.busy.timeout: belongs to `command`; a file is watched, and needs no time"),
        Mistake(
            "policy: {busy: {command: []}}",
            "26: policy.busy.command: takes a program and its arguments, like `[/usr/local/bin/is-recording]`"),
        Mistake(
            "policy: {busy: {command: /bin/a}}",
            "26: policy.busy.command: takes a list, like `[a, b]`, not a single value"),
        Mistake(
            "policy: {busy: {command: [is-recording]}}",
            "27: policy.busy.command: takes the program by its absolute path; no shell looks for it"),
        Mistake(
            "policy: {busy: {command: [/bin/a], every: 0}}",
            "43: policy.busy.every: takes a length of time from 1s to 1h, not `0`"),
        Mistake(
            "policy: {busy: {command: [/bin/a], every: 2h}}",
            "43: policy.busy.every: takes a length of time from 1s to 1h, not `2h`"),
        Mistake(
            "policy: {busy: {command: [/bin/a], timeout: 5m}}",
            "45: policy.busy.timeout: takes a length of time from 100ms to 1m, not `5m`"),
        Mistake(
            "destinations: {a: {type: tus, url: 'http://a/', busy: {file: /run/a, minutes: 3}}}",
            "70: destinations.a.busy.minutes: no setting is called `minutes` here; allowed here: file, command, every, timeout"
        ),
        Mistake(
            "policy: {on_battery: pause}",
            "10: policy.on_battery: is a condition now; under `pause`, write `- {name: on-battery, when: {on_battery: true}}`"
        ),
        Mistake(
            "policy: {on_battery: allow}",
            "10: policy.on_battery: is a condition now; `allow` is what holds without one: take the line out"),
        Mistake(
            "policy: {expires_after: 7}",
            "25: policy.expires_after: takes a length of time with its unit, like `90s`, `1h30m` or `500ms`, not 7 without a unit"
        ),
        Mistake(
            "policy: {expires_after: 5s}",
            "25: policy.expires_after: takes a length of time from 1m to 3660d, not `5s`"),
        Mistake(
            "policy: {quotas: 20 GB}",
            "18: policy.quotas: takes a list of quotas, like `[{per: day, bytes: 20 GB}]`, not a single value"),
        Mistake(
            "policy: {quotas: [20 GB]}",
            "19: policy.quotas[0]: takes a quota, like `{per: day, bytes: 20 GB}`, not a single value"),
        Mistake(
            "policy: {quotas: [{bytes: 20 GB}]}",
            "19: policy.quotas[0].per: `per` is missing; name its period: `hour`, `day`, `week` or `month`"),
        Mistake(
            "policy: {quotas: [{per: days, bytes: 20 GB}]}",
            "25: policy.quotas[0].per: takes one of hour, day, week, month, not `days`; did you mean `day`?"),
        Mistake(
            "policy: {quotas: [{per: day}]}",
            "19: policy.quotas[0]: limits nothing; add `bytes`, like `bytes: 20 GB`, or `files`, like `files: 500`"),
        Mistake(
            "policy: {quotas: [{per: day, bytes: 20}]}",
            "37: policy.quotas[0].bytes: takes an amount with its unit, like `20 GB` or `8 MiB`, not 20 without a unit"
        ),
        Mistake(
            "policy: {quotas: [{per: day, bytes: 200 kB}]}",
            "37: policy.quotas[0].bytes: is too little for any file to start; the minimum is 288 KiB, and 0 stops all transfers"
        ),
        Mistake(
            "policy: {quotas: [{per: day, files: 1.5}]}",
            "37: policy.quotas[0].files: takes a whole number from 0 to 1000000000, not `1.5`"),
        Mistake(
            "policy: {quotas: [{per: day, bytes: 20 GB, direction: in}]}",
            "55: policy.quotas[0].direction: takes one of sent, received, both, not `in`"),
        Mistake(
            "policy: {quotas: [{per: day, files: 5, direction: both}]}",
            "51: policy.quotas[0].direction: applies to `bytes`; files count when they start"),
        Mistake(
            "policy: {quotas: [{per: day, starts_on: 3, files: 1}]}",
            "41: policy.quotas[0].starts_on: belongs to `per: week` and `per: month`; a day begins at midnight"),
        Mistake(
            "policy: {quotas: [{per: hour, starts_on: 3, files: 1}]}",
            "42: policy.quotas[0].starts_on: belongs to `per: week` and `per: month`; an hour begins at minute 0"
        ),
        Mistake(
            "policy: {quotas: [{per: month, starts_on: 32, files: 1}]}",
            "43: policy.quotas[0].starts_on: takes a day of the month from 1 to 31, not `32`"),
        Mistake(
            "policy: {quotas: [{per: month, starts_on: mon, files: 1}]}",
            "43: policy.quotas[0].starts_on: takes a day of the month from 1 to 31, not `mon`; days of the week belong to `per: week`"
        ),
        Mistake(
            "policy: {quotas: [{per: week, starts_on: 15, files: 1}]}",
            "42: policy.quotas[0].starts_on: takes one of mon, tue, wed, thu, fri, sat, sun, not `15`; days of the month belong to `per: month`"
        ),
        Mistake(
            "policy: {quotas: [{per: week, starts_on: monday, files: 1}]}",
            "42: policy.quotas[0].starts_on: takes one of mon, tue, wed, thu, fri, sat, sun, not `monday`; did you mean `mon`?"
        ),
        Mistake(
            "policy: {quotas: [{per: month, bytes: 5 GB, network: metered, direction: both}]}",
            "45: policy.quotas[0].network: is a condition now; write "
                + "`- {name: metered, per: month, bytes: 5 GB, direction: both, when: {metered: true}}`"),
        Mistake(
            "policy: {quotas: [{per: day, files: 1, network: any}]}",
            "40: policy.quotas[0].network: is a condition now; write `- {per: day, files: 1}`"),
        Mistake(
            "policy: {quotas: [{per: day, files: 1, when: {metered: true}}]}",
            "19: policy.quotas[0].name: `name` is missing; the count of a quota with a condition has a name"),
        Mistake(
            "policy: {quotas: [{name: lte, per: day, files: 1}]}",
            "26: policy.quotas[0].name: names the count of a quota with a condition; add `when`, or take this out"),
        Mistake(
            "policy: {quotas: [{name: a, per: day, files: 1, when: {metered: true}}, {name: a, per: hour, files: 1, when: {roaming: true}}]}",
            "80: policy.quotas[1].name: another quota of this list is called `a`"),
        Mistake(
            "policy: {quotas: [{per: day, bytes: 1 GB}, {per: day, files: 9, bytes: 2 GB}]}",
            "72: policy.quotas[1].bytes: is counted by quotas[0] already, over the same time; keep the smaller one"
        ),
        Mistake(
            "policy: {quotas: [{per: month, files: 9}, {per: month, starts_on: 1, files: 10}]}",
            "77: policy.quotas[1].files: is counted by quotas[0] already"),
        Mistake(
            "policy: {quotas: [{per: day, bytes: 1 GB, between: 08:00-09:00}]}",
            "43: policy.quotas[0].between: a quota counts whole hours, days, weeks or months"),
        Mistake(
            "policy: {bandwidth: 5}",
            "21: policy.bandwidth: takes a rate, like `2 MB/s`, `8 Mbit/s` or `unlimited`, not `5`"),
        Mistake(
            "policy: {bandwidth: 2 MB}",
            "21: policy.bandwidth: takes a rate, like `2 MB/s`, `8 Mbit/s` or `unlimited`, not `2 MB`; a rate ends in `/s`"
        ),
        Mistake(
            "policy: {bandwidth: [{limit: 2 Mb/s}]}",
            "32: policy.bandwidth[0].limit: `Mb` is not a unit of bytes; did you mean `MB`?"),
        Mistake(
            "policy: {bandwidth: [{between: \"mon-fri 08:00-18:00\", except: [2026-12-24], limit: 2 MB/s}]}",
            "23: policy.bandwidth[0].between: is a condition now; write "
                + "`- {limit: 2 MB/s, when: {between: \"mon-fri 08:00-18:00\", except: [2026-12-24]}}`"),
        Mistake(
            "policy: {bandwidth: [{limit: 1 MB/s, when: {except: [2026-12-24]}}]}",
            "53: policy.bandwidth[0].when.except: belongs to `between`; add that, or take this out"),
        Mistake(
            "policy: {bandwidth: [{when: {between: 08:00-09:00}}]}",
            "22: policy.bandwidth[0].limit: `limit` is missing; name the rate, like `limit: 2 MB/s`"),
        Mistake(
            "policy: {metered: maybe}",
            "19: policy.metered: takes `allow` or `pause`, not `maybe`"),
        Mistake(
            "policy: {metered: 200 kB/s}",
            "19: policy.metered: a limit over metered networks has a condition: under `bandwidth`, write "
                + "`- {limit: 200 kB/s, when: {metered: true}}`"),
        Mistake(
            "policy: {metered: {limit: 1 MB/s}}",
            "19: policy.metered: a limit over metered networks has a condition: under `bandwidth`, write "
                + "`- {limit: 1 MB/s, when: {metered: true}}`"),
        Mistake("policy: {metered: {}}", "19: policy.metered: takes `allow` or `pause`, not a mapping"),
        Mistake(
            "policy: {metered_unknown: pause}", "27: policy.metered_unknown: takes `allow` or `metered`, not `pause`"),
        Mistake(
            "policy: {networks: {interface: a}}",
            "20: policy.networks: takes a list of networks, like `[{interface: \"wwan*\", metered: true}]`, not a mapping"
        ),
        Mistake(
            "policy: {networks: [{interface: wwan0}]}",
            "21: policy.networks[0].metered: sets nothing; add `metered: true` or `false`"),
        Mistake(
            "policy: {networks: [{gateway: 192.168.1.1, metered: true}]}",
            "31: policy.networks[0].gateway: is an IP address; the gateway is identified by its hardware address"),
        Mistake(
            "policy: {networks: [{subnet: 192.168.1.0, metered: true}]}",
            "30: policy.networks[0].subnet: takes a network with its length, like `192.168.1.0/24`, not the address `192.168.1.0`; for that address alone write `192.168.1.0/32`"
        ),
        Mistake(
            "policy: {networks: [{subnet: 192.168.1.77/27, metered: true}]}",
            "30: policy.networks[0].subnet: `192.168.1.77/27` has host bits set; the network is `192.168.1.64/27`"
        ),
        Mistake(
            "policy: {networks: [{subnet: 192.168.1.0/33, metered: true}]}",
            "30: policy.networks[0].subnet: takes a network, like `192.168.1.0/24` or `fd00::/8`, not `192.168.1.0/33`"),
        Mistake(
            "policy: {networks: [{interface: enp0s31f6u1u2u3u4, allowed: false}]}",
            "33: policy.networks[0].interface: is longer than the 15 bytes"),
        Mistake(
            "policy: {networks: [{interface: \"wwan[0\", allowed: false}]}",
            "38: policy.networks[0].interface: has a `[` without its `]`; write `\\[` for the bracket itself"),
        Mistake(
            "policy: {networks: [{interface: \"wwan{0,1}\", allowed: false}]}",
            "38: policy.networks[0].interface: has braces, which are not expanded; write one pattern for each form"),
        Mistake(
            "policy: {networks: [{interfaces: eth0, metered: true}]}",
            "22: policy.networks[0].interfaces: no setting is called `interfaces` here; did you mean `interface`?"),
    ]
}
