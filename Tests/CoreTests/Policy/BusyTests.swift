import Testing

@testable import Core

@Suite("Busy")
struct BusyTests {
    private static let now = WallTime(milliseconds: 1_795_161_600_000)
    private static let since = now.advanced(by: .seconds(-60))
    private static let file = BusySource.file("/run/recording")
    private static let command = BusySource.command(["/bin/is-recording", "--token", "secret"])

    private func holds(
        _ words: [BusySource: BusyAnswer.Answer], everywhere: BusySource? = nil, remote: BusySource? = nil,
        folder: BusySource? = nil, excusing exempt: Set<Exemption> = []
    ) -> [Hold] {
        func rules(_ source: BusySource?) -> PolicyRules { PolicyRules(busy: source.map { BusyRule($0) }) }
        let inputs = Admission.PolicyInputs(
            now: Self.now, monotonic: MonotonicTime(nanoseconds: 1), running: 0, everything: nil,
            busy: words.mapValues { BusyAnswer($0, since: Self.since) })
        return Admission(total: 3, rules: rules(everywhere)).holds(
            for: Admission.DestinationState(
                name: "nas", slots: 2, running: 0, pause: nil, health: DestinationHealth(), rules: rules(remote)),
            from: Admission.FolderState(name: "cam", rules: rules(folder), exempt: exempt), in: inputs)
    }

    @Test("each of the three places holds alone, and names the busy source, since when, and its setting")
    func places() {
        let words = [Self.file: BusyAnswer.Answer.busy, Self.command: .free]
        #expect(
            holds(words, everywhere: Self.file) == [
                Hold(.busy, since: Self.since, text: "`/run/recording` exists: `busy` of policy")
            ])
        #expect(
            holds(words, everywhere: Self.command, remote: Self.file, folder: Self.command).map(\.text) == [
                "`/run/recording` exists: `busy` of destinations.nas"
            ])
        #expect(
            holds([Self.file: .free, Self.command: .busy], everywhere: Self.file, folder: Self.command).map(\.text) == [
                "`/bin/is-recording` reports busy: `busy` of folder cam"
            ])
        #expect(holds([Self.file: .free, Self.command: .free], everywhere: Self.file, folder: Self.command).isEmpty)
    }

    @Test("an unclear answer counts as busy, with the problem and a remedy; an unchecked source holds as well")
    func unknown() {
        let broken = BusyAnswer.Answer.unknown(problem: "ended with exit status 3", remedy: "run it by hand")
        let held = holds([Self.command: broken], remote: Self.command)
        #expect(
            held.map(\.text) == [
                "`/bin/is-recording` ended with exit status 3, which counts as busy; run it by hand: "
                    + "`busy` of destinations.nas"
            ])
        #expect(held.map(\.kind) == [.busy])
        #expect(
            holds([:], everywhere: Self.file, folder: Self.command).map(\.text) == [
                "`/run/recording` was not checked yet: `busy` of policy",
                "`/bin/is-recording` has not answered yet: `busy` of folder cam",
            ])
    }

    @Test("no exception lifts `busy`, and without it there is no hold")
    func exemptions() {
        let busy = [Self.file: BusyAnswer.Answer.busy]
        #expect(holds(busy, everywhere: Self.file, excusing: [.window, .quota, .metered]).count == 1)
        #expect(holds(busy).isEmpty)
    }

    @Test("`busy` forbids every byte, including remote removals, unless only the folder sets it")
    func hardBlockers() {
        let inputs = Admission.PolicyInputs(
            now: Self.now, monotonic: MonotonicTime(nanoseconds: 1), running: 0, everything: nil,
            busy: [Self.file: BusyAnswer(.busy, since: Self.since)])
        let remote = Admission.DestinationState(
            name: "nas", slots: 2, running: 0, pause: nil, health: DestinationHealth(),
            rules: PolicyRules(busy: BusyRule(Self.file)))
        let admission = Admission(total: 3)
        #expect(admission.hardBlockers(on: remote, in: inputs).map(\.kind) == [.busy])
        #expect(admission.verdict(for: remote, in: inputs) == .wait(admission.hardBlockers(on: remote, in: inputs)))
        let folder = Admission.FolderState(name: "cam", rules: PolicyRules(busy: BusyRule(Self.file)))
        #expect(admission.hardBlockers(on: folder, in: inputs).map(\.kind) == [.busy])
        // Only an event ends it: no time of the policy does.
        #expect(admission.nextChange([remote], [folder], in: inputs) == nil)
    }
}
