import TestKit
import TestTraits
import Testing

@testable import Core

/// Rules that have to hold for all quotas, all traffic and every change of the clock. A failure names its seed.
@Suite("Quotas for any configuration", .ownThreads)
struct QuotaRuleTests {
    /// A ledger that keeps everything, and the quota state that has to agree with it.
    private struct Play {
        struct Sent {
            var at: WallTime
            var spending: Spending
            var kind: QuotaState.Class
        }

        var dice: Dice
        let zone: TestZone
        var now: WallTime
        var quotas: QuotaState
        var sent: [Sent] = []
        var open: [Int64: Sent] = [:]
        private var lastStep: Int64 = 0

        init(seed: UInt64) {
            dice = Dice(seed: seed)
            zone = TestZone.all[Int.random(in: 0..<TestZone.all.count, using: &dice)]
            // Around changes of clocks, in months without a 29th to 31st, and on a leap day.
            let near = zone.changes + ["2026-02-28T12:00:00", "2028-02-29T12:00:00", "2026-12-31T23:00:00"].map(utc)
            let place = near[Int.random(in: 0..<near.count, using: &dice)]
            now = place.advanced(by: .seconds(Int64.random(in: -200_000...200_000, using: &dice)))
            var dice = dice
            func rules() -> PolicyRules {
                PolicyRules(quotas: (0..<Int.random(in: 0...2, using: &dice)).map { _ in Self.quota(&dice) })
            }
            quotas = QuotaState(
                policy: rules(), destinations: [("nas", rules()), ("cloud", rules())],
                folders: [("door", rules()), ("yard", rules())])
            self.dice = dice
            status()
        }

        private static func quota(_ dice: inout Dice) -> Quota {
            let weekday = Weekday.allCases[Int.random(in: 0..<7, using: &dice)]
            let periods: [Period] = [
                .hour, .day, .week(startsOn: weekday), .month(startsOn: Int.random(in: 1...31, using: &dice)),
                .month(startsOn: Int.random(in: 29...31, using: &dice)),
            ]
            let limits = (Int64.random(in: 0...300, using: &dice), Int64.random(in: 0...6, using: &dice))
            let which = Int.random(in: 0...2, using: &dice)
            let isConditional = Bool.random(using: &dice)
            return Quota(
                period: periods[Int.random(in: 0..<periods.count, using: &dice)], bytes: which == 0 ? nil : limits.0,
                files: which == 1 ? nil : limits.1, name: isConditional ? "lte" : nil,
                when: isConditional ? .fact(.metered(true)) : nil)
        }

        mutating func kind() -> QuotaState.Class {
            QuotaState.Class(
                Bool.random(using: &dice) ? "nas" : "cloud",
                from: [nil, "door", "yard"][Int.random(in: 0...2, using: &dice)],
                Bool.random(using: &dice) ? Self.named : [])
        }

        /// The quotas with conditions of every place that counts one class or another.
        static let named: Set<QuotaName> = [
            QuotaName(.policy, "lte"), QuotaName(.destination("nas"), "lte"), QuotaName(.folder("door"), "lte"),
        ]
        static let kinds = ["nas", "cloud"].flatMap { destination in
            [nil, "door", "yard"].flatMap { folder in
                [[], named].map { QuotaState.Class(destination, from: folder, $0) }
            }
        }

        /// The ledger's answer: usage with a later date counts as well.
        func sum(_ line: QuotaState.Line, since: WallTime) -> Spending {
            sent.filter { line.counts($0.kind) && $0.at >= since }.map(\.spending).reduce(.none, +)
        }

        mutating func status() {
            for recount in quotas.advance(to: now, in: zone.zone) {
                let all = sent.filter {
                    $0.at >= recount.since
                        && (recount.destination == nil || recount.destination == $0.kind.destination)
                        && (recount.folder == nil || recount.folder == $0.kind.folder)
                        && (recount.name.map($0.kind.quotas.contains) ?? true)
                }
                quotas.recount(recount, spent: all.map(\.spending).reduce(.none, +), at: now)
            }
        }

        /// The quota state at that time, if nothing more is sent.
        func quotas(at moment: WallTime) -> QuotaState {
            var later = self
            later.now = moment
            later.status()
            return later.quotas
        }

        mutating func step(mayGoBack: Bool) {
            let spending = Spending(
                bytes: Int64.random(in: 0...40, using: &dice), files: Int64.random(in: 0...1, using: &dice))
            switch Int.random(in: 0...9, using: &dice) {
            case 0...2:
                now = now.advanced(by: .seconds(Int64.random(in: 1...7200, using: &dice)))
                status()
            case 3:
                now = now.advanced(by: .seconds(Int64.random(in: 1...2_000_000, using: &dice)))
                status()
            case 4 where mayGoBack:
                now = now.advanced(by: .seconds(-Int64.random(in: 1...400_000, using: &dice)))
                status()
            case 4, 5, 6:
                let kind = kind()
                lastStep += 1
                quotas.open(lastStep, spending, for: kind, at: now)
                open[lastStep] = Sent(at: now, spending: spending, kind: kind)
            case 7, 8:
                guard let step = open.keys.sorted().randomElement(using: &dice), let was = open[step] else { return }
                open[step] = nil
                let actual = Spending(
                    bytes: Int64.random(in: 0...was.spending.bytes + 5, using: &dice), files: was.spending.files)
                sent.append(Sent(at: now, spending: actual, kind: was.kind))
                quotas.close(step, actual, at: now)
            default:
                let kind = kind()
                sent.append(Sent(at: now, spending: spending, kind: kind))
                quotas.spend(spending, for: kind, at: now)
            }
        }
    }

    @Test("with a steady clock, usage is exact to the byte")
    func counted() {
        for seed in 1...300 {
            var play = Play(seed: UInt64(seed))
            for count in 0..<60 {
                play.step(mayGoBack: false)
                for line in play.quotas.lines {
                    let stretch = line.quota.period.interval(around: play.now, in: play.zone.zone)
                    #expect(line.stretch == stretch, "seed \(seed), step \(count)")
                    #expect(line.spent == play.sum(line, since: stretch.lowerBound), "seed \(seed), step \(count)")
                    let reserved = play.open.values.filter { line.counts($0.kind) }.map(\.spending).reduce(.none, +)
                    #expect(line.reserved == reserved, "seed \(seed), step \(count)")
                }
            }
        }
    }

    @Test(
        "a clock that jumps back grants no quota twice: usage since the last start of a period counts")
    func neverTwice() {
        for seed in 1...300 {
            var play = Play(seed: UInt64(seed))
            // The usage at the beginning of the counted period, or of the one before to which the clock was set back.
            var began = play.quotas.lines.map { _ in 0 }
            for count in 0..<80 {
                let before = play.quotas.lines.map(\.stretch)
                play.step(mayGoBack: true)
                for (number, line) in play.quotas.lines.enumerated() {
                    guard let stretch = line.stretch, let last = before[number], let spent = line.spent else {
                        Issue.record("seed \(seed), step \(count): the usage is unknown")
                        return
                    }
                    if stretch.lowerBound >= last.upperBound { began[number] = play.sent.count }
                    let least = play.sent[began[number]...].filter { line.counts($0.kind) }.map(\.spending)
                        .reduce(.none, +)
                    #expect(spent.bytes >= least.bytes && spent.files >= least.files, "seed \(seed), step \(count)")
                    #expect(stretch.contains(play.now), "seed \(seed), step \(count)")
                    // All usage with a date in it, or later, counts, regardless of changes of the clock.
                    let dated = play.sum(line, since: stretch.lowerBound)
                    #expect(spent.bytes >= dated.bytes && spent.files >= dated.files, "seed \(seed), step \(count)")
                }
            }
        }
    }

    @Test("the strictest counts: each exhausted quota has a hold, and the tightest limits the amount")
    func strictest() {
        for seed in 1...300 {
            var play = Play(seed: UInt64(seed))
            for _ in 0..<25 { play.step(mayGoBack: true) }
            for kind in Play.kinds {
                let lines = play.quotas.lines.filter { $0.counts(kind) }
                var bytes: [Int64] = []
                var files: [Int64] = []
                var under = 0
                for line in lines {
                    let spent = line.spent ?? .none
                    if let limit = line.quota.bytes { bytes.append(max(0, limit - spent.bytes - line.reserved.bytes)) }
                    if let limit = line.quota.files { files.append(max(0, limit - spent.files - line.reserved.files)) }
                    if let limit = line.quota.bytes, spent.bytes >= limit { under += 1 }
                }
                let remaining = play.quotas.remaining(for: kind)
                #expect(remaining.bytes == bytes.min(), "seed \(seed)")
                #expect(remaining.files == files.min(), "seed \(seed)")
                #expect(remaining.binding?.bytesLeft == remaining.bytes, "seed \(seed)")
                let holds = play.quotas.holds(for: kind)
                // Traffic for no file is held by no quota of files, and neither is a begun upload.
                let usedUp = (bytes: bytes.count { $0 == 0 }, files: kind.folder == nil ? 0 : files.count { $0 == 0 })
                #expect(holds.count == usedUp.bytes + usedUp.files, "seed \(seed)")
                #expect(holds.count(where: \.holdsOnlyNewUploads) == usedUp.files, "seed \(seed)")
                #expect(play.quotas.holds(for: kind, isStarting: false).count == under, "seed \(seed)")
                #expect(holds.allSatisfy { $0.kind == .quota && $0.since <= play.now }, "seed \(seed)")
            }
        }
    }

    @Test("a hold lasts until its stated end: before it nothing changes without an event")
    func until() {
        for seed in 1...400 {
            var play = Play(seed: UInt64(seed))
            for _ in 0..<30 { play.step(mayGoBack: false) }
            // Running uploads continue to count, regardless of the calendar.
            for step in play.open.keys { play.quotas.close(step, .none, at: play.now) }
            let next = play.quotas.nextChange
            for kind in Play.kinds {
                let holds = play.quotas.holds(for: kind)
                for hold in holds {
                    guard let until = hold.until else {
                        #expect(hold.text.contains("allows nothing"), "seed \(seed)")
                        continue
                    }
                    #expect(next.map { $0 <= until } ?? false, "seed \(seed)")
                    let before = play.quotas(at: WallTime(milliseconds: until.milliseconds - 1))
                    #expect(
                        before.holds(for: kind).contains { $0.text == hold.text && $0.until == until }, "seed \(seed)")
                    let then = play.quotas(at: until)
                    #expect(
                        !then.holds(for: kind).contains { $0.text == hold.text && $0.until == until }, "seed \(seed)")
                }
                guard let next else { continue }
                let before = play.quotas(at: WallTime(milliseconds: next.milliseconds - 1))
                #expect(before.holds(for: kind).map(\.text) == holds.map(\.text), "seed \(seed)")
            }
            guard let next else { continue }
            let then = play.quotas(at: next)
            #expect(Play.kinds.contains { then.holds(for: $0) != play.quotas.holds(for: $0) }, "seed \(seed)")
        }
    }
}
