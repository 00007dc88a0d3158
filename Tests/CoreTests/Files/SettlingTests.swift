import Core
import Testing

@Suite("Settling")
struct SettlingTests {
    typealias Evidence = Settling<String>.Evidence

    static func at(_ seconds: Double) -> MonotonicTime { MonotonicTime(nanoseconds: Int64(seconds * 1e9)) }

    static func status(_ version: Int64 = 0, size: Int64 = 100) -> FileStatus {
        FileStatus(device: 1, inode: 7, size: size, modified: version, changed: version, born: nil, mode: 0o100644)
    }

    struct Row: CustomTestStringConvertible, Sendable {
        let evidence: Evidence
        let writer: OpenWriter
        var quietFor: Duration?
        /// In seconds.
        let quiet: Double
        let by: SettleProof
        var testDescription: String { "\(evidence), writer \(writer), quiet_for \(quietFor.map { "\($0)" } ?? "-")" }
    }

    /// The rungs of the manual.
    static let rungs = [
        Row(evidence: .closed, writer: .absent, quiet: 1, by: .lease),
        Row(evidence: .closed, writer: .unknown, quiet: 10, by: .closed),
        Row(evidence: .event, writer: .absent, quiet: 10, by: .quiet),
        Row(evidence: .event, writer: .unknown, quiet: 10, by: .quiet),
        Row(evidence: .found, writer: .absent, quiet: 30, by: .quiet),
        Row(evidence: .found, writer: .unknown, quiet: 30, by: .quiet),
        Row(evidence: .closed, writer: .absent, quietFor: .seconds(5), quiet: 5, by: .lease),
        Row(evidence: .closed, writer: .unknown, quietFor: .seconds(5), quiet: 5, by: .closed),
        Row(evidence: .event, writer: .absent, quietFor: .seconds(5), quiet: 5, by: .quiet),
        Row(evidence: .found, writer: .unknown, quietFor: .seconds(5), quiet: 5, by: .quiet),
        Row(evidence: .closed, writer: .absent, quietFor: .zero, quiet: 0, by: .lease),
    ]

    @Test("a file waits as long as the known facts require, and no longer", arguments: rungs)
    func ladder(_ row: Row) {
        var settling = Settling<String>()
        settling.note("a", row.evidence, status: Self.status(), quietFor: row.quietFor, at: Self.at(100))
        var result: (by: SettleProof, at: MonotonicTime)?
        while result == nil, let next = settling.next {
            for place in settling.due(at: next) {
                guard let by = settling.evaluated(at: place, Self.status(), writer: row.writer, at: next) else {
                    continue
                }
                result = (by, next)
            }
        }
        #expect(result?.by == row.by)
        #expect(result?.at == Self.at(100 + row.quiet))
        #expect(settling.count == 0)
    }

    @Test("an observed change restarts the time, and is shown as growth")
    func change() {
        var settling = Settling<String>()
        settling.note("a", .closed, status: Self.status(1), at: Self.at(0))
        #expect(settling.due(at: Self.at(0.999)).isEmpty)
        #expect(settling.due(at: Self.at(1)) == ["a"])
        #expect(settling.evaluated(at: "a", Self.status(2), writer: .absent, at: Self.at(1)) == nil)
        #expect(settling.all["a"]?.isGrowing == true)
        #expect(settling.due(at: Self.at(1.9)).isEmpty)
        #expect(settling.due(at: Self.at(2)) == ["a"])
        #expect(settling.evaluated(at: "a", Self.status(2), writer: .absent, at: Self.at(2)) == .lease)
    }

    @Test(
        "size, either time and inode each count as a change",
        arguments: [
            FileStatus(device: 1, inode: 7, size: 101, modified: 0, changed: 0, born: nil, mode: 0o100644),
            FileStatus(device: 1, inode: 7, size: 100, modified: 1, changed: 0, born: nil, mode: 0o100644),
            FileStatus(device: 1, inode: 7, size: 100, modified: 0, changed: -1, born: nil, mode: 0o100644),
            FileStatus(device: 1, inode: 8, size: 100, modified: 0, changed: 0, born: nil, mode: 0o100644),
        ])
    func changes(_ other: FileStatus) {
        var settling = Settling<String>()
        settling.note("a", .closed, status: Self.status(), at: Self.at(0))
        #expect(settling.due(at: Self.at(5)) == ["a"])
        #expect(settling.evaluated(at: "a", other, writer: .absent, at: Self.at(5)) == nil)
    }

    @Test("an event restarts the time, a scan without a change does not")
    func events() {
        var settling = Settling<String>()
        settling.note("a", .closed, status: Self.status(), at: Self.at(0))
        settling.note("a", .closed, status: Self.status(), at: Self.at(0.5))
        settling.note("a", .found, status: Self.status(), at: Self.at(0.9))
        #expect(settling.due(at: Self.at(1.4)).isEmpty)
        #expect(settling.due(at: Self.at(1.5)) == ["a"])
    }

    @Test("a close event shortens the wait of a file found by a scan")
    func hurried() {
        var settling = Settling<String>()
        settling.note("a", .found, status: Self.status(), at: Self.at(0))
        settling.note("a", .closed, status: Self.status(), at: Self.at(5))
        #expect(settling.due(at: Self.at(6)) == ["a"])
        #expect(settling.evaluated(at: "a", Self.status(), writer: .absent, at: Self.at(6)) == .lease)
        #expect(settling.due(at: Self.at(100)).isEmpty)
    }

    @Test("an open file is checked after 1, 2, 4, 8, 10, 10 seconds; a close event causes an earlier check")
    func busy() {
        var settling = Settling<String>()
        settling.note("a", .closed, status: Self.status(), at: Self.at(0))
        var now = 1.0
        for wait in [1.0, 2, 4, 8, 10, 10] {
            #expect(settling.due(at: Self.at(now)) == ["a"])
            #expect(settling.evaluated(at: "a", Self.status(), writer: .present, at: Self.at(now)) == nil)
            #expect(settling.due(at: Self.at(now + wait - 0.001)).isEmpty)
            now += wait
        }
        settling.note("a", .closed, status: Self.status(9), at: Self.at(now))
        #expect(settling.due(at: Self.at(now + 1)) == ["a"])
        #expect(settling.evaluated(at: "a", Self.status(9), writer: .absent, at: Self.at(now + 1)) == .lease)
    }

    @Test("a file that grows for ever delays no other")
    func independent() {
        var settling = Settling<String>()
        settling.note("quiet", .closed, status: Self.status(), at: Self.at(0))
        for tick in 0..<9 {
            settling.note("busy", .closed, status: Self.status(Int64(tick)), at: Self.at(Double(tick) / 10))
        }
        #expect(settling.due(at: Self.at(1)) == ["quiet"])
    }

    @Test("a dropped file is not due; one with the same name starts again")
    func forgotten() {
        var settling = Settling<String>()
        settling.note("a", .closed, status: Self.status(), at: Self.at(0))
        settling.forget("a")
        #expect(settling.count == 0)
        #expect(settling.due(at: Self.at(1)).isEmpty)
        settling.note("a", .event, status: Self.status(), at: Self.at(2))
        #expect(settling.due(at: Self.at(11.9)).isEmpty)
        #expect(settling.due(at: Self.at(12)) == ["a"])
    }

    @Test("at most the free number is taken; others stay due")
    func limited() {
        var settling = Settling<Int>()
        for file in 0..<10 { settling.note(file, .closed, status: Self.status(), at: Self.at(0)) }
        #expect(settling.due(at: Self.at(1), limit: 4).count == 4)
        #expect(settling.due(at: Self.at(1), limit: 100).count == 6)
    }

    @Test("no file is accepted within its quiet time after a change", arguments: 0..<60)
    func property(_ seed: UInt64) {
        var chance = Chances(state: seed)
        var settling = Settling<Int>()
        let quiet = QuietTimes()
        var versions = [Int64](repeating: 0, count: 5)
        var changedAt = [MonotonicTime](repeating: Self.at(0), count: 5)
        var isClosed = [Bool](repeating: false, count: 5)
        var isOpen = [Bool](repeating: false, count: 5)
        var accepted = 0
        var now = Self.at(0)
        for _ in 0..<2_000 {
            now = now.advanced(by: .milliseconds(Int64(chance.next() % 1_500)))
            let file = Int(chance.next() % 5)
            switch chance.next() % 10 {
            case 0, 1:  // a write without an event
                versions[file] += 1
                changedAt[file] = now
                isOpen[file] = true
            case 2:
                isOpen[file] = false
                settling.note(file, .closed, status: Self.status(versions[file]), at: now)
                isClosed[file] = true
            case 3:
                settling.note(file, .found, status: Self.status(versions[file]), at: now)
            case 4:
                settling.note(file, .event, status: Self.status(versions[file]), at: now)
            case 5:
                settling.forget(file)
                isClosed[file] = false
            default: break
            }
            for place in settling.due(at: now) {
                let writer: OpenWriter =
                    chance.next() % 4 == 0 ? .unknown : isOpen[place] ? .present : .absent
                guard let by = settling.evaluated(at: place, Self.status(versions[place]), writer: writer, at: now)
                else {
                    continue
                }
                accepted += 1
                let least = by == .lease ? quiet.closed : quiet.unsure
                #expect(now.since(changedAt[place]) >= least)
                #expect(writer != .present)
                #expect(by == .quiet || isClosed[place])
                isClosed[place] = false
            }
        }
        #expect(accepted > 0)
        // Every remaining file becomes due again: none is lost.
        for file in 0..<5 where settling.contains(file) { settling.note(file, .event, status: Self.status(), at: now) }
        #expect(Set(settling.due(at: now.advanced(by: .seconds(60)))) == Set(settling.all.keys))
    }

    struct Chances {
        var state: UInt64
        mutating func next() -> UInt64 {
            state &+= 0x9E37_79B9_7F4A_7C15  // splitmix64
            var z = state
            z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
            z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
            return z ^ (z >> 31)
        }
    }
}
