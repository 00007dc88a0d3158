import TestKit
import TestTraits
import Testing

@testable import Core

/// Rules that have to hold for every configuration and at every time. A failure names its seed.
@Suite("Admission for any configuration", .ownThreads)
struct AdmissionRuleTests {
    private struct Case {
        let zone: TestZone
        let admission: Admission
        let remote: Admission.DestinationState
        let folder: Admission.FolderState
        let everything: Admission.Pause?
        let globalStop: Admission.Pause?
        let now: WallTime
        let busy: [BusySource: BusyAnswer]

        init(seed: UInt64) {
            var dice = Dice(seed: seed)
            let zone = TestZone.all[Int.random(in: 0..<TestZone.all.count, using: &dice)]
            let near = zone.changes[Int.random(in: 0..<zone.changes.count, using: &dice)].milliseconds
            let now = WallTime(milliseconds: near + Int64.random(in: -3000...3000, using: &dice) * 60_000)
            let sources: [BusySource] = [.file("/run/recording"), .command(["/bin/is-recording"])]
            let answers: [BusyAnswer.Answer] = [.free, .free, .busy, .unknown(problem: "hangs", remedy: "kick it")]
            busy = Dictionary(
                sources.map { ($0, BusyAnswer(answers.randomElement(using: &dice) ?? .free, since: now)) }
            ) { $1 }
            func rules() -> PolicyRules {
                PolicyRules(
                    windows: (0..<Int.random(in: 0...2, using: &dice)).map { _ in
                        Window(
                            days: Set(Weekday.allCases.filter { _ in Int.random(in: 0...3, using: &dice) > 0 })
                                .union([.wed]),
                            from: Int.random(in: 0...47, using: &dice) * 30,
                            to: Int.random(in: 1...48, using: &dice) * 30)
                    },
                    busy: sources.randomElement(using: &dice).flatMap { source in
                        Bool.random(using: &dice) ? BusyRule(source) : nil
                    })
            }
            func pause() -> Admission.Pause? {
                guard Int.random(in: 0...3, using: &dice) == 0 else { return nil }
                let minutes = Int64.random(in: 1...3000, using: &dice)
                return Admission.Pause(
                    since: now, until: Bool.random(using: &dice) ? now.advanced(by: .seconds(60 * minutes)) : nil)
            }
            self.zone = zone
            self.now = now
            admission = Admission(total: Int.random(in: 1...4, using: &dice), rules: rules())
            remote = Admission.DestinationState(
                name: "nas", slots: Int.random(in: 1...3, using: &dice), running: Int.random(in: 0...3, using: &dice),
                pause: pause(), health: DestinationHealth(), rules: rules())
            folder = Admission.FolderState(name: "door", pause: pause(), rules: rules())
            everything = pause()
            globalStop = pause()
        }

        func inputs(at now: WallTime, clockTrouble: Hold? = nil) -> Admission.PolicyInputs {
            var inputs = Admission.PolicyInputs(
                now: now, monotonic: MonotonicTime(nanoseconds: 0), zone: zone.zone, clockTrouble: clockTrouble,
                running: remote.running, everything: Self.standing(everything, now), busy: busy)
            inputs.globalStop = Self.standing(globalStop, now)
            return inputs
        }

        /// The daemon drops a pause that has ended.
        private static func standing(_ pause: Admission.Pause?, _ now: WallTime) -> Admission.Pause? {
            pause.flatMap { $0.until.map { $0 <= now } ?? false ? nil : $0 }
        }

        func hardBlockers(at now: WallTime) -> [Hold] {
            var (remote, folder) = (remote, folder)
            remote.pause = Self.standing(remote.pause, now)
            folder.pause = Self.standing(folder.pause, now)
            return admission.hardBlockers(on: remote, from: folder, in: inputs(at: now))
        }
    }

    @Test("no upload runs against a rule, and permitted ones run while slots are free")
    func never() {
        for seed in 1...500 {
            let one = Case(seed: UInt64(seed))
            let hardBlockers = one.admission.hardBlockers(on: one.remote, in: one.inputs(at: one.now))
            switch one.admission.verdict(for: one.remote, in: one.inputs(at: one.now)) {
            case .go(let free):
                #expect(hardBlockers.isEmpty, "seed \(seed)")
                #expect(free <= one.admission.total - one.remote.running, "seed \(seed)")
                #expect(free <= one.remote.slots - one.remote.running, "seed \(seed)")
            case .busy: #expect(hardBlockers.isEmpty, "seed \(seed)")
            case .wait(let holds): #expect(holds == hardBlockers && !holds.isEmpty, "seed \(seed)")
            }
        }
    }

    @Test("the strictest counts: each closed place has a hold, and an open one none")
    func strictest() {
        for seed in 1...500 {
            let one = Case(seed: UInt64(seed))
            let (day, time) = one.zone.zone.localTime(at: one.now)
            let places = [
                ("policy", one.admission.rules), ("destinations.nas", one.remote.rules),
                ("folder door", one.folder.rules),
            ]
            let closed = places.filter { !$1.windows.isEmpty && !$1.windows.contains { $0.contains(day, time) } }
            let texts = one.hardBlockers(at: one.now).filter { $0.kind == .rule }.map(\.text)
            #expect(
                texts == closed.map { "outside the windows of \($0.0): `windows: \(Window.yaml($0.1.windows))`" },
                "seed \(seed)")
            let held = places.filter { place in
                place.1.busy.map { one.busy[$0.source]?.isFree != true } ?? false
            }
            let busy = one.hardBlockers(at: one.now).filter { $0.kind == .busy }.map(\.text)
            #expect(busy.count == held.count, "seed \(seed)")
            #expect(zip(busy, held).allSatisfy { $0.hasSuffix("`busy` of \($1.0)") }, "seed \(seed)")
        }
    }

    @Test("until the next change the answer stays, and then it differs")
    func nextChange() {
        for seed in Tier.sample(1...150, 30) {
            let one = Case(seed: UInt64(seed))
            let now = one.hardBlockers(at: one.now)
            let next = one.admission.nextChange([one.remote], [one.folder], in: one.inputs(at: one.now))
            let end = next ?? one.now.advanced(by: .seconds(12 * 86_400))
            var at = WallTime(milliseconds: (one.now.milliseconds / 60_000 + 1) * 60_000)
            while at < end {
                if one.hardBlockers(at: at) != now {
                    Issue.record("seed \(seed): \(at) differs from \(one.now), and the next change is \(end)")
                    break
                }
                at = at.advanced(by: .seconds(60))
            }
            if let next { #expect(one.hardBlockers(at: next) != now, "seed \(seed)") }
        }
    }

    @Test("a hold lasts until its stated end, and no longer")
    func until() {
        for seed in 1...300 {
            let one = Case(seed: UInt64(seed))
            for hold in one.hardBlockers(at: one.now) {
                guard let until = hold.until else { continue }
                let before = one.hardBlockers(at: WallTime(milliseconds: until.milliseconds - 1))
                #expect(before.contains { $0.text == hold.text }, "seed \(seed)")
                #expect(!one.hardBlockers(at: until).contains(hold), "seed \(seed)")
            }
        }
    }

    @Test("an untrusted clock holds uploads that depend on it, once, and no others")
    func clock() {
        let trouble = Hold(.clock, since: WallTime(milliseconds: 0), text: "not set")
        for seed in 1...300 {
            let one = Case(seed: UInt64(seed))
            let holds = one.admission.hardBlockers(
                on: one.remote, from: one.folder, in: one.inputs(at: one.now, clockTrouble: trouble))
            let depends = ![one.admission.rules, one.remote.rules, one.folder.rules].allSatisfy(\.isTimeless)
            #expect(holds.count { $0 == trouble } == (depends ? 1 : 0), "seed \(seed)")
            #expect(!holds.contains { $0.kind == .rule }, "seed \(seed)")
        }
    }
}
