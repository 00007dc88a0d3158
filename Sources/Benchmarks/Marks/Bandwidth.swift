internal import Core
internal import Linux
internal import TestKit
internal import Transport

/// `LASTING=6` for a quick run.
private let seconds = count("LASTING", 60)

/// How exactly a limit is kept, measured at the other end.
let bandwidthMarks: [Mark] = [
    Mark(name: "transport/bandwidth", what: "a shared limit, as the receiving sockets see it for \(seconds) s") { _ in
        var findings: [Finding] = []
        for rate: Int64 in [200_000, 5_000_000] {
            for transfers in [1, 8] {
                let seen = try await Limited.measure(rate: rate, transfers: transfers)
                let name = "\(shownBytes(rate))/s, \(transfers) transfer\(transfers == 1 ? "" : "s")"
                findings.append(.bound("error at \(name)", abs(seen.rate / Double(rate) - 1) * 100, "%", most: 2))
                findings.append(
                    .note("most in a quarter of a second", "\(shown(seen.peak / Double(rate))) x the limit"))
            }
        }
        return findings
    }
]

private enum Limited {
    /// - Returns: Bytes a second over the whole time, and in the fullest quarter of a second.
    static func measure(rate: Int64, transfers: Int) async throws -> (rate: Double, peak: Double) {
        let sink = try Sink()
        let folder = TemporaryFolder()
        let file = folder.path.appending("file")
        let size = Int64(seconds + 4) * rate / Int64(transfers)
        try makeFile(file, size: size)
        let (throttle, transport) = (Throttle(rate: rate), Transport())
        return try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<transfers {
                group.addTask {
                    _ = try await transport.send(
                        Request(
                            "PUT", "\(sink.url)/\(number)", body: .file(.path(file), offset: 0, count: size),
                            throttles: [throttle]))
                }
            }
            // The first second contains the connections and the saved-up tokens.
            let clock = ContinuousClock()
            let begin = clock.now.advanced(by: .seconds(1))
            try await clock.sleep(until: begin)
            var samples: [(at: ContinuousClock.Instant, bytes: Int64)] = [(clock.now, sink.now.bytes)]
            while let last = samples.last, begin.duration(to: last.at) < .seconds(seconds) {
                try await clock.sleep(for: .milliseconds(5))
                samples.append((clock.now, sink.now.bytes))
            }
            group.cancelAll()
            while let result = await group.nextResult() {
                if case .failure(let error as TransportError) = result, error.kind == .cancelled { continue }
                try result.get()
                throw WrongResult("a transfer ended before its time")
            }
            var peak = 0.0
            var first = 0
            for sample in samples {
                while samples[first + 1].at.duration(to: sample.at) >= .milliseconds(250) { first += 1 }
                let time = samples[first].at.duration(to: sample.at)
                if time >= .milliseconds(250) {
                    peak = max(peak, Double(sample.bytes - samples[first].bytes) / time.inSeconds)
                }
            }
            guard let start = samples.first, let end = samples.last else { throw WrongResult("nothing was seen") }
            return (Double(end.bytes - start.bytes) / start.at.duration(to: end.at).inSeconds, peak)
        }
    }
}
