import Core
import TestKit
import Testing

@Suite("Rate of requests")
struct RequestRateTests {
    @Test("requests begin in the order in which they came, and never two within one interval", arguments: 0..<60)
    func spread(_ seed: UInt64) {
        var dice = Dice(seed: seed)
        let unit = RequestRate.Unit.allCases.randomElement(using: &dice) ?? .second
        let rate = RequestRate(count: Int.random(in: 1...40, using: &dice), per: unit)
        var line = RequestLine<Int>(rate: rate)
        var now = MonotonicTime(nanoseconds: 5_000_000_000)
        // When each of those that wait asks again.
        var waiting: [(key: Int, at: MonotonicTime)] = []
        var (begun, left): ([(key: Int, at: MonotonicTime)], Set<Int>) = ([], [])
        var count = 0
        for _ in 0..<400 {
            if Int.random(in: 0..<3, using: &dice) == 0 || waiting.isEmpty {
                waiting.append((count, now))
                count += 1
            }
            if Int.random(in: 0..<20, using: &dice) == 0, let gone = waiting.randomElement(using: &dice)?.key {
                line.leave(gone)
                left.insert(gone)
                waiting.removeAll { $0.key == gone }
            }
            // Those that came first ask first, as a loop that is woken at its time does, or later.
            for place in waiting.indices where waiting[place].at <= now {
                guard let wait = line.turn(of: waiting[place].key, at: now) else {
                    begun.append((waiting[place].key, now))
                    continue
                }
                #expect(wait > .zero)
                waiting[place].at = now.advanced(by: wait)
            }
            waiting.removeAll { one in begun.contains { $0.key == one.key } }
            let step = Double(rate.interval.inMilliseconds) * Double.random(in: 0...1.5, using: &dice)
            now = now.advanced(by: .microseconds(Int64(step * 1000)))
        }
        #expect(begun.map(\.key) == begun.map(\.key).sorted())
        for (one, next) in zip(begun, begun.dropFirst()) { #expect(next.at.since(one.at) >= rate.interval) }
        // A line that stands still would begin nothing: with steps of three quarters of an interval, most begin.
        #expect(begun.count > 100 && begun.count + waiting.count + left.count >= count)
    }

    @Test("requests that wait go at once when the limit is taken away, and none is saved up")
    func change() {
        let now = MonotonicTime(nanoseconds: 1)
        var line = RequestLine<String>(rate: RequestRate(count: 1, per: .hour))
        #expect(line.turn(of: "a", at: now) == nil)
        #expect(line.turn(of: "b", at: now) == .seconds(3600))
        #expect(line.turn(of: "c", at: now) == .seconds(7200))
        line.rate = nil
        #expect(line.turn(of: "c", at: now) == nil)
        #expect(line.turn(of: "b", at: now) == nil)
        line.rate = RequestRate(count: 4, per: .second)
        let later = now.advanced(by: .seconds(100))
        #expect(line.turn(of: "d", at: later) == nil)
        #expect(line.turn(of: "e", at: later) == .milliseconds(250))
    }

    @Test("names of traffic classes are those of the RFCs, and any number of six bits is one")
    func classes() {
        // RFC 2474 (4.2.2.2), RFC 2597 (6), RFC 3246 (2.7), RFC 5865 (4), RFC 8622 (3).
        let points: [String: UInt8] = [
            "cs0": 0, "cs1": 8, "CS7": 56, "af11": 10, "af13": 14, "af43": 38, "ef": 46, "va": 44, "le": 1, "63": 63,
        ]
        for (name, point) in points { #expect(TrafficClass(name)?.codePoint == point) }
        for number in 0..<64 {
            let one = TrafficClass(String(number))
            #expect(one.map { TrafficClass($0.written) } == one && one?.codePoint == UInt8(number))
        }
        for wrong in ["64", "-1", "08", "cs8", "af14", "", "cs 1"] { #expect(TrafficClass(wrong) == nil) }
    }
}
