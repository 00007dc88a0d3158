internal import Control
internal import Core

extension Verb {
    static let show: Verb = Verb(
        "show", "show everything about one upload", operands: "ID|KEY|PATH", takes: .uploads(), count: 1...1,
        details: [
            "Shows its holds with their reasons, its attempts and errors, its digest, its name at the destination, and "
                + "what happens to the source."
        ],
        options: Option.client,
        examples: [
            ("sluice show 01JD3K8Q", "Names the upload by the beginning of its id."),
            ("sluice show /srv/camera/a.mp4", "Names it by the path of its file."),
            ("sluice show a.mp4", "Names it by a relative path, or by the end of a path if only one file has it."),
        ]
    ) { call in
        guard let operand = call.arguments.operands.first else { return .usage }
        let asked = try reference(operand)
        let detail = try await call.withClient { try await $0.show(asked) }
        if call.json {
            try call.printJSON(detail)
        } else {
            for line in detailLines(detail, call.console, now: call.now()) { try call.console.line(line) }
        }
        return .ok
    }
}
