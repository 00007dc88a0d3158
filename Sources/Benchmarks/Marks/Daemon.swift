internal import Core
internal import Glibc
internal import Linux
internal import TestKit

/// The daemon's reaction time, and its cost while it works and while it is idle.
let daemonMarks: [Mark] = [
    Mark(name: "daemon/latency", what: "64 KiB closed to the first byte of its creation request, idle daemon") {
        bench in
        let sink = try Sink()
        let scene = try await Scene(bench, destination: "{type: tus, url: \"\(sink.url)/u\"}", quiet: "100ms")
        let clock = ContinuousClock()
        var late: [Double] = []
        for number in 1...20 {
            let aside = scene.home.path.appending("beside/next")
            try makeFile(aside, size: 64 << 10, seed: UInt64(number))
            let start = clock.now
            try Files.rename(aside, to: scene.drop.appending(FilePath("\(number).bin")))
            try await eventually("the file is asked for", every: .milliseconds(1)) { sink.now.uploads.count == number }
            guard let arrival = sink.now.lastCreation else { throw WrongResult("no creation") }
            late.append(start.duration(to: arrival).inSeconds * 1000 - 100)
            try await scene.completed(number)
        }
        return [.bound("above the quiet time, median of 20", median(late), "ms", most: 30)]
    },
    Mark(name: "daemon/idle", what: "60 s with nothing to do, 1,000 folders watched, tus configured") { bench in
        let sink = try Sink()
        let scene = try await Scene(bench, destination: "{type: tus, url: \"\(sink.url)/u\"}", folders: 1000)
        try scene.place("first.bin", size: 1 << 20, seed: 1)
        try await scene.completed(1)
        let minute = try await scene.minuteAsleep()
        return [
            .bound("wake-ups", Double(minute.wakeUps), "", most: 0),
            .bound("bytes written", Double(minute.written), "", most: 0),
            .bound("resident", Double(minute.usage.resident) / 1_048_576, "MiB", most: 20),
            .note("most ever resident", "\(shown(Double(minute.usage.residentPeak) / 1_048_576)) MiB"),
        ]
    },
    Mark(
        name: "daemon/waiting",
        what: "60 s in which 100 uploads wait for a window; networks, quotas and what is busy are watched"
    ) { bench in
        let sink = try Sink()
        // In an hour and a half: nothing is due before.
        let minute = Int(Zone.local.localTime(at: SystemClocks().wall()).time / 60_000) + 90
        func time(_ minute: Int) -> String { "\(padded(minute / 60 % 24, 2)):\(padded(minute % 60, 2))" }
        let scene = try await Scene(
            bench, destination: "{type: tus, url: \"\(sink.url)/u\", busy: {command: [/bin/false], every: 1s}}",
            policy:
                ", busy: {file: /run/sluice-bench/recording}, metered: pause, windows: [\"\(time(minute))-\(time(minute + 10))\"], "
                + "quotas: [{per: day, bytes: 20 GB}]")
        for number in 0..<100 { try scene.place(FilePath("\(number).bin"), size: 10_000, seed: UInt64(number + 1)) }
        try await scene.staged(1_000_000)
        let asleep = try await scene.minuteAsleep()
        return [
            .bound("wake-ups", Double(asleep.wakeUps), "", most: 0),
            .bound("bytes written", Double(asleep.written), "", most: 0),
            .bound("bytes sent", Double(sink.now.bytes), "", most: 0),
        ]
    },
    Mark(name: "daemon/memory", what: "resident with 8 transfers at once, files of 64 MiB and of 1 GiB") { bench in
        var found: [Finding] = []
        for megabytes in [64, 1024] as [Int64] {
            let sink = try Sink()
            let scene = try await Scene(bench, destination: "{type: tus, url: \"\(sink.url)/u\"}")
            try await scene.pause()
            for number in 0..<8 {
                try scene.place(FilePath("\(number).bin"), size: megabytes << 20, seed: UInt64(number + 1))
            }
            try await scene.staged(megabytes << 23)
            try scene.forgetPeak()
            try await scene.resume()
            try await scene.completed(8)
            found.append(
                .bound(
                    "8 x \(megabytes) MiB", Double(try scene.usage().residentPeak) / 1_048_576, "MiB", most: 30))
        }
        return found
    },
    Mark(name: "build/binary", what: "the program as it ships, stripped") { bench in
        [.bound("size", Double(try FileStatus(at: bench.sluice).size) / 1_000_000, "MB", most: 20)]
    },
]
