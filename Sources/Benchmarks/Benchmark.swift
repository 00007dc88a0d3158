/// One measured number that can be compared with the last release's.
struct Benchmark: Sendable {
    /// `module/subject`, so that the list sorts by module.
    let name: String
    /// The unit of one iteration, for "per second": names, bytes, files.
    let unit: String
    let perIteration: Int
    /// Throws when its result is wrong: the figure would be worthless.
    let body: @Sendable () async throws -> Void
}

/// Thrown when a benchmark's result is wrong.
struct WrongResult: Error, CustomStringConvertible {
    let description: String
    init(_ description: String) { self.description = description }
}

extension Benchmark {
    /// The median and the worst of `rounds`, after one round that does not count.
    ///
    /// A round repeats the body for at least `roundLength`, so that a short one is not distorted by the clock's
    /// resolution.
    func measured(rounds: Int = 7, roundLength: Duration = .milliseconds(150)) async throws -> Figure {
        let clock = ContinuousClock()
        var perIteration: [Duration] = []
        for round in 0...rounds {
            var iterations = 0
            let start = clock.now
            var spent: Duration
            repeat {
                try await body()
                iterations += 1
                spent = start.duration(to: clock.now)
            } while spent < roundLength
            if round > 0 { perIteration.append(spent / iterations) }
        }
        perIteration.sort()
        return Figure(
            benchmark: self, median: perIteration[perIteration.count / 2], worst: perIteration[perIteration.count - 1])
    }
}

/// A measured result: one tab-separated line of name, per second, unit and worst.
struct Figure: Sendable, CustomStringConvertible {
    let benchmark: Benchmark
    /// Time of one iteration.
    let median: Duration
    let worst: Duration

    var description: String {
        [benchmark.name, "\(perSecond(median))", "\(benchmark.unit)/s", "worst \(perSecond(worst))"]
            .joined(separator: "\t")
    }

    private func perSecond(_ duration: Duration) -> Int {
        Int(Double(benchmark.perIteration) / (duration / .seconds(1)))
    }
}
