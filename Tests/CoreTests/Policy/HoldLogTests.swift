import Testing

@testable import Core

@Suite("Log of holds")
struct HoldLogTests {
    private func hold(_ kind: Hold.Kind) -> Hold { Hold(kind, since: WallTime(milliseconds: 0), text: "\(kind)") }
    private func at(_ seconds: Int64) -> MonotonicTime { MonotonicTime(nanoseconds: seconds * 1_000_000_000) }

    @Test("a hold is logged at its start and end, and not in between; another reason is logged again")
    func once() {
        var log = HoldLog<String>()
        #expect(log.update(["a": nil, "b": nil], at: at(0)).isEmpty)
        #expect(log.update(["a": hold(.quota), "b": nil], at: at(1)) == ["a": .held(hold(.quota), times: 1)])
        #expect(
            log.update(["a": hold(.quota), "b": hold(.rule)], at: at(2)) == ["b": .held(hold(.rule), times: 1)]
        )
        #expect(
            log.update(["a": hold(.metered), "b": hold(.rule)], at: at(3)) == [
                "a": .held(hold(.metered), times: 1)
            ])
        #expect(log.update(["a": nil, "b": nil], at: at(4)) == ["a": .free(.metered), "b": .free(.rule)])
        #expect(log.update(["a": nil, "b": nil], at: at(5)).isEmpty)
    }

    @Test("an alternating hold is logged less and less often, its end only after its start; after an hour it is new")
    func flapping() {
        var log = HoldLog<String>()
        var told: [Int] = []
        for round in 1...20 {
            let begun = log.update(["a": hold(.offline)], at: at(Int64(round) * 10))["a"]
            let ended = log.update(["a": nil], at: at(Int64(round) * 10 + 5))["a"]
            if case .held(_, let times)? = begun {
                told.append(times)
                #expect(times == round)
            }
            #expect((begun == nil) == (ended == nil))
        }
        #expect(told == [1, 2, 4, 8, 16])
        #expect(log.update(["a": hold(.offline)], at: at(4_000))["a"] == .held(hold(.offline), times: 1))
    }

    @Test("a hold without waiting uploads ends silently, and one that lasts a day is not logged again")
    func quiet() {
        var log = HoldLog<String>()
        _ = log.update(["a": hold(.quota)], at: at(0))
        #expect(log.update(["a": hold(.quota)], at: at(86_400)).isEmpty)
        #expect(log.update([:], at: at(86_401)).isEmpty)
        #expect(log.update(["a": nil], at: at(86_402)).isEmpty)
    }
}
