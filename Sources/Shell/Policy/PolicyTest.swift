internal import API
internal import Config
internal import Core
internal import Linux
internal import Transport

/// `policy test`: decides about a file that need not exist.
struct PolicyTest {
    private let call: Invocation
    private let settings: Settings
    private let folder: FolderSettings
    private let destinations: [DestinationSettings]
    private let time: WallTime
    private let network: DescribedNetwork?
    /// `nil`: unknown; `.some(nil)`: without a battery.
    private let power: Power??
    private let temperature: Temperature
    private let file: TestedFile

    /// The file, as far as it is described.
    private struct TestedFile: Encodable {
        var size: Int64?
        var kind: String?
        /// Seconds.
        var duration: Int64?

        var words: [String] {
            [size.map { Units.bytes($0) }, kind, duration.map { Units.duration($0) + " long" }].compactMap { $0 }
        }
    }

    init(_ settings: Settings, _ call: Invocation) throws {
        let arguments = call.arguments
        let verb = PolicyCommand.verb
        self.call = call
        self.settings = settings
        folder = try Self.folder(arguments, settings, verb)
        destinations = try Self.destinations(arguments, settings, folder)
        let now = call.now()
        if let written = arguments.text("at") {
            guard let meant = Self.tested(meant: written, now: now) else {
                throw Arguments.usage(
                    "--at takes a time like 03:00, \"2026-12-01 03:00\" or 2d, not `\(printable(written))`", verb)
            }
            time = meant
        } else {
            time = now
        }
        network = try NetworkOptions(arguments, of: verb).network(among: settings.policy.rules.networks)
        power = try Self.power(arguments, at: time, verb)
        temperature = try Self.temperature(arguments, verb)
        file = try Self.file(arguments, verb)
    }

    private static func folder(_ arguments: Arguments, _ settings: Settings, _ verb: Verb) throws -> FolderSettings {
        let folders = settings.writtenFolders
        let names = folders.map { printable($0.watch.name) }.joined(separator: ", ")
        guard let name = arguments.text("folder") else {
            guard folders.count == 1, let only = folders.first else {
                throw Arguments.usage("name the folder with --folder; there are: \(names)", verb)
            }
            return only
        }
        guard let folder = folders.first(where: { $0.watch.name == name }) else {
            throw CommandError(
                .notFound, "no folder is called `\(printable(name))`", remedy: "There are: \(names).")
        }
        return folder
    }

    private static func destinations(
        _ arguments: Arguments, _ settings: Settings, _ folder: FolderSettings
    ) throws -> [DestinationSettings] {
        let all = folder.uploadTo.compactMap { settings.destination(named: $0) }
        guard let name = arguments.text("to") else { return all }
        guard let one = all.first(where: { $0.name == name }) else {
            throw CommandError(
                .notFound, "folder \(folder.watch.name) does not upload to `\(printable(name))`",
                remedy: "It uploads to: \(folder.uploadTo.map { printable($0) }.joined(separator: ", ")).")
        }
        return [one]
    }

    /// A moment to come, or one that is past.
    private static func tested(meant written: String, now: WallTime) -> WallTime? {
        let text = written.split(separator: " ", maxSplits: 1).joined(separator: "T")
        return Tense.allCases.lazy.compactMap { moment(meant: text, $0, now: now) }.first
    }

    private static func power(_ arguments: Arguments, at time: WallTime, _ verb: Verb) throws -> Power?? {
        guard let written = arguments.text("battery") else { return nil }
        if written == "none" { return .some(nil) }
        guard written.hasSuffix("%"), let percent = Int(written.dropLast()), (0...100).contains(percent) else {
            throw Arguments.usage(
                "--battery takes a share like 40%, or `none`, not `\(printable(written))`", verb)
        }
        return .some(Power(isOnBattery: true, percent: percent, since: time))
    }

    private static func temperature(_ arguments: Arguments, _ verb: Verb) throws -> Temperature {
        guard let written = arguments.text("temperature") else { return .notStated }
        guard let degrees = Int(written), (-273...1000).contains(degrees) else {
            throw Arguments.usage(
                "--temperature takes whole degrees Celsius like 75, not `\(printable(written))`", verb)
        }
        return Temperature(degrees)
    }

    private static func file(_ arguments: Arguments, _ verb: Verb) throws -> TestedFile {
        var file = TestedFile(kind: arguments.text("kind"))
        if let written = arguments.text("size") {
            guard let size = byteCount(in: written) else {
                throw Arguments.usage("--size takes an amount like 30MB, not `\(printable(written))`", verb)
            }
            file.size = size
        }
        if let written = arguments.text("duration") {
            guard let seconds = Units.seconds(written) else {
                throw Arguments.usage("--duration takes a length like 10s, not `\(printable(written))`", verb)
            }
            file.duration = seconds
        }
        return file
    }

    // MARK: Deciding

    func run() throws -> ExitCode {
        let answers = destinations.filter { taking($0) != .no }.map { destination in
            var answer = question(about: destination).answer
            // A copy to a folder has no limit but 0.
            if destination.type == "directory" { answer.limit = nil }
            return (destination, answer)
        }
        if call.json {
            try call.printJSON(
                TestView(
                    at: time.description, folder: folder.watch.name, network: network?.factWords, file: file,
                    answers: answers.map { TestView.Answer($0.name, $1) },
                    notSentTo: destinations.filter { taking($0) == .no }.map(\.name), assumed: assumptions))
        } else {
            for line in lines(answers) { try call.console.line(line) }
        }
        return !answers.isEmpty && answers.allSatisfy { $0.1.holds.isEmpty } ? .ok : .notNow
    }

    // MARK: Routes

    /// The condition under which `upload_to` sends a file to a destination; `nil` where it sends every file.
    private func condition(of destination: DestinationSettings) -> Condition? {
        folder.routes.first { $0.destinations.contains(destination.name) }?.when
    }

    /// Whether `upload_to` sends the file there.
    private func taking(_ destination: DestinationSettings) -> Truth {
        guard let condition = condition(of: destination) else { return .yes }
        return condition.truth(of: answers(to: condition.fileQuestions))
    }

    private func question(about destination: DestinationSettings) -> PolicyQuestion {
        PolicyQuestion(
            settings.policy.rules, to: (destination.name, destination.policy.rules),
            from: (folder.watch.name, folder.policy.rules), of: answers(to: settings.fileQuestions),
            over: way(to: destination), at: time,
            in: .local, power: power, temperature: temperature)
    }

    /// What the command line says about the file.
    private func answers(to questions: [FilePredicate]) -> FileAnswers {
        FileAnswers(
            size: file.size, kind: file.kind.flatMap { FileKind(rawValue: $0) },
            duration: file.duration.map { $0 * 1000 }, to: questions)
    }

    private func way(to destination: DestinationSettings) -> Reachability {
        if isHere(destination) { return .local }
        if destination.type == "directory", case .text(let word)? = destination.values["network"],
            let cost = Metered(rawValue: word)
        {
            return .mount(cost, text: "set by `network: \(word)` of the destination")
        }
        return .described(network ?? DescribedNetwork(NetworkRule()))
    }

    /// Its bytes stay on this machine.
    private func isHere(_ destination: DestinationSettings) -> Bool {
        if destination.type == "directory" { return destination.values["network"] == nil }
        return ["url", "endpoint"].contains { key in
            if case .text(let url)? = destination.values[key] { WebAddress(url).isLoopback } else { false }
        }
    }

    private var assumptions: [String] {
        var found: [String] = []
        if let network, let kind = network.kind { found.append("\(network.words) is \(kind.rawValue)") }
        for destination in destinations where isHere(destination) {
            found.append("bytes to \(destination.name) stay on this machine")
        }
        for destination in destinations {
            guard let condition = condition(of: destination), case .unknown = taking(destination) else { continue }
            found.append("`upload_to` sends the file to \(destination.name), which it does if \(condition.words)")
        }
        for route in folder.routes {
            guard let after = route.after else { continue }
            for (position, name) in route.destinations.enumerated().dropFirst()
            where destinations.contains(where: { $0.name == name }) {
                let earlier = route.destinations.prefix(position).joined(separator: ", ")
                found.append(
                    "\(earlier) has not verified the file within \(writtenTime(after * position)); before, it does not go to "
                        + "\(name) (`first_of`)")
            }
        }
        let places =
            [("policy", settings.policy.rules)]
            + destinations.map { ("destinations.\($0.name)", $0.policy.rules) }
            + [("folder \(folder.watch.name)", folder.policy.rules)]
        for (place, rules) in places {
            found += rules.quotas.filter { !$0.allowsNothing }.map { "the quota of \(place) has room: \($0.words)" }
            if let busy = rules.busy { found.append("\(busy.source.name) does not say that the machine is busy") }
        }
        let asked =
            [settings.policy.beforeUpload, folder.policy.beforeUpload] + destinations.map(\.policy.beforeUpload)
        for rule in asked.compactMap({ $0 }) { found.append("\(rule.command.first ?? "") lets the file go") }
        return found.map { printable($0) }
    }

    private func lines(_ answers: [(DestinationSettings, PolicyQuestion.Answer)]) -> [String] {
        let width = call.console.width
        let local = LocalTime(time)
        let day = Zone.local.localTime(at: time).day.weekday.rawValue.capitalizedWord
        var head = ["folder \(printable(folder.watch.name))"]
        head += file.words.map { printable($0) }
        head.append("\(day) \(local.date) \(local.clock.prefix(5))")
        head.append(network.map { "over \(printable($0.factWords))" } ?? "over a network that is not described")
        var lines = [wrapped(head.joined(separator: ", "), width: width)]
        for (destination, answer) in answers {
            lines.append(contentsOf: self.lines(destination.name, answer))
        }
        for destination in destinations {
            guard taking(destination) == .no, let condition = condition(of: destination) else { continue }
            let name = call.console.styled("to \(printable(destination.name))", .bold)
            lines.append("\(name): `upload_to` does not send it there")
            lines.append(wrapped("it sends what fits: \(printable(condition.words))", width: width, indent: 2))
        }
        for assumption in assumptions {
            lines.append(wrapped("assumed: \(assumption)", width: width))
        }
        return lines
    }

    private func lines(_ destination: String, _ answer: PolicyQuestion.Answer) -> [String] {
        let width = call.console.width
        let name = call.console.styled("to \(printable(destination))", .bold)
        if answer.holds.isEmpty {
            let limit = answer.limit.map {
                ", at most \(Units.rate($0.rate)) (`\($0.key)` of \(printable($0.place)))"
            }
            var lines = ["\(name): it goes\(limit ?? "")"]
            if let changes = answer.changes {
                lines.append("  until \(shown(changes)); then it is held:")
                lines += answer.later.map {
                    wrapped($0.kind.rawValue + ": " + printable($0.text), width: width, indent: 4)
                }
            }
            return lines
        }
        var lines = ["\(name): it is held" + (answer.changes.map { " until \(shown($0))" } ?? "")]
        for hold in answer.holds {
            let until = hold.until.map { " (until \(shown($0)))" } ?? ""
            lines.append(wrapped("\(hold.kind.rawValue): \(printable(hold.text))\(until)", width: width, indent: 2))
        }
        return lines
    }

    private func shown(_ other: WallTime) -> String {
        let local = LocalTime(other)
        let day = Zone.local.localTime(at: other).day
        if day == Zone.local.localTime(at: time).day { return String(local.clock.prefix(5)) }
        return "\(day.weekday.rawValue.capitalizedWord) \(local.date) \(local.clock.prefix(5))"
    }

    private struct TestView: Encodable {
        struct Answer: Encodable {
            let destination: String
            let goes: Bool
            let holds: [HoldView]
            /// When it begins or ceases to go, by time alone.
            let changes: String?
            /// The holds from then on.
            let later: [HoldView]
            /// Bytes a second.
            let rate: Int64?
            let rateOf: String?

            init(_ destination: String, _ answer: PolicyQuestion.Answer) {
                self.destination = destination
                goes = answer.holds.isEmpty
                holds = answer.holds.map(HoldView.init)
                changes = answer.changes?.description
                later = answer.later.map(HoldView.init)
                rate = answer.limit?.rate
                rateOf = answer.limit.map { "\($0.key) of \($0.place)" }
            }
        }

        let at, folder: String
        let network: String?
        let file: TestedFile
        let answers: [Answer]
        /// Destinations that `upload_to` does not send it to.
        let notSentTo: [String]
        let assumed: [String]
    }
}
