internal import API
internal import Control
internal import Core

extension Verb {
    static let why: Verb = Verb(
        "why", "explain why an upload waits, or why a file is not uploaded", operands: "ID|KEY|PATH", takes: .uploads(),
        count: 1...1,
        details: [
            "Shows each hold of the upload, since when and until when. PATH may also be a file that is no upload: then "
                + "it shows which rule excludes the file, what it still waits for, or where it was uploaded. For a "
                + "watched folder it shows its state, and what holds its uploads."
        ],
        options: Option.client,
        examples: [
            ("sluice why 01JD3K8Q", "Names an upload by the beginning of its id."),
            ("sluice why /srv/camera/notes.txt", "Names a file, whether it is an upload or not."),
        ]
    ) { call in
        guard let operand = call.arguments.operands.first else { return .usage }
        let asked = try referenceOrFolder(operand)
        let view = try await call.withClient { try await $0.why(asked) }
        if call.json {
            try call.printJSON(view)
        } else {
            for line in whyLines(view, call.console, now: call.now()) { try call.console.line(line) }
        }
        return .ok
    }
}

func whyLines(_ view: WhyView, _ console: Console, now: WallTime) -> [String] {
    view.answers.flatMap { answer in
        let head = answer.path + (answer.destination.map { " to \($0)" } ?? "")
        let state = answer.state.rawValue.replacing("_", with: " ")
        var lines = [console.styled(head, .bold) + "  " + state]
        // The first hold repeats the sentence, with more detail.
        if answer.holds.isEmpty || answer.state == .folder { lines.append("  " + printable(answer.text)) }
        for hold in answer.holds {
            lines.append("  " + holdText(hold, now) + ", since \(Units.moment(hold.since, now: now))")
        }
        if let way = answer.way {
            lines.append("  route: " + routeText(way))
        }
        for other in answer.otherWays ?? [] {
            lines.append("  not by \(printable(other.interface ?? "")): \(printable(other.text))")
        }
        for exception in answer.exceptions ?? [] { lines.append("  allowed: " + exceptionText(exception, now)) }
        return lines
    }
}
