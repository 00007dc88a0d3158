internal import Config
internal import Core
internal import Linux

/// The questions of `sluice init` at a terminal: at most six.
struct SetupDialogue {
    let console: Console
    let detection: SetupDetection

    /// Asks for what is missing.
    ///
    /// - Returns: The token that was typed; `nil` for none.
    func complete(_ answers: inout SetupAnswers) async throws -> String? {
        if answers[.folder] == nil {
            let found = detection.folders()
            for (number, folder) in found.enumerated() { try console.line("  \(number + 1)  \(folder.display)") }
            try await ask(
                found.isEmpty ? "Which folder has the videos?" : "Which folder has the videos? A number or a path:",
                .folder, &answers
            ) { text in
                guard let number = Int(text), found.indices.contains(number - 1) else { return text }
                return found[number - 1].text ?? text
            }
        }
        if answers[.to] == nil {
            try await ask(
                "Where do they go? The address of a tus server (https://nas.example/files/) or a folder:", .to, &answers
            )
        }
        var token: String?
        if answers[.to]?.hasPrefix("/") == false, answers[.tokenFile] == nil { token = try await readToken() }
        if answers[.after] == nil {
            try await ask(
                "What happens to a video that was uploaded and verified? keep, delete or move=/srv/done/{name} [keep]:",
                .after, &answers, otherwise: "keep")
        }
        if answers[.metered] == nil, answers[.hours] == nil { try await askForRule(&answers) }
        if answers[.start] == nil, detection.hasSystemd {
            try await ask(
                "Start the service now, and at each boot? yes or no [yes]:", .start, &answers, otherwise: "yes"
            ) { ["y": "true", "yes": "true", "n": "false", "no": "false"][$0.lowercased()] ?? $0 }
        }
        return token
    }

    private func askForRule(_ answers: inout SetupAnswers) async throws {
        while true {
            let text = try await line(
                "When may it upload? always, unmetered (not over metered networks), or hours like 22:00-06:00 [always]:"
            )
            switch text {
            case "", "always": return
            case "unmetered":
                try answers.set(.metered, "pause")
                return
            default:
                do {
                    try answers.set(.hours, text)
                    return
                } catch { console.error(error.text) }
            }
        }
    }

    /// - Parameters:
    ///   - otherwise: The answer for an empty line.
    ///   - meaning: The text that stands for a typed one.
    private func ask(
        _ question: String, _ key: SetupAnswers.Question, _ answers: inout SetupAnswers, otherwise: String = "",
        meaning: (String) -> String = { $0 }
    ) async throws {
        while true {
            let typed = try await line(question)
            let text = meaning(typed.isEmpty ? otherwise : typed)
            guard !text.isEmpty else { continue }
            do {
                try answers.set(key, text)
                return
            } catch { console.error(error.text) }
        }
    }

    /// The next line, without the spaces around it.
    func line(_ question: String) async throws -> String {
        try console.raw(question + " ")
        guard let answer = await readAnswer() else {
            throw CommandError(.usage, "the input ended before the last answer; nothing was written")
        }
        let text = answer.drop { $0 == " " }
        return String(text.reversed().drop { $0 == " " }.reversed())
    }

    private func readToken() async throws -> String? {
        let console = console
        defer { console.error("") }
        do {
            let token = try await blocking {
                try SecretPrompt.read { try console.raw("Its token, which is not shown [none]: ") }
            }
            return token.isEmpty ? nil : token
        } catch is SecretPrompt.Failure {
            throw CommandError(.usage, "the input ended before the last answer; nothing was written")
        }
    }
}
