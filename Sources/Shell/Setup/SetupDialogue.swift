internal import Config
internal import Core
internal import Destinations
internal import Linux

/// The questions of `sluice init` at a terminal: at most six.
struct SetupDialogue {
    let console: Console
    let detection: SetupDetection
    let asksToStart: Bool

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
                "Where do they go? A folder, the address of a tus server (https://nas.example/files/), or a type with its "
                    + "settings (s3 bucket=videos region=eu-central-1; also \(Self.types)):", .to, &answers)
        }
        var token: String?
        if answers[.tokenFile] == nil, let secret = answers.target?.secret { token = try await read(secret) }
        if answers[.after] == nil {
            try await ask(
                "What happens to a video that was uploaded and verified? keep, delete or move=/srv/done/{name} [keep]:",
                .after, &answers, otherwise: "keep")
        }
        if answers[.metered] == nil, answers[.hours] == nil { try await askForRule(&answers) }
        if answers[.start] == nil, asksToStart {
            try await ask(
                "Start the service now, and at each boot? yes or no [yes]:", .start, &answers, otherwise: "yes"
            ) { ["y": "true", "yes": "true", "n": "false", "no": "false"][$0.lowercased()] ?? $0 }
        }
        return token
    }

    private static let types = DestinationTable.builtIn.map(\.type.name)
        .filter { !["s3", "tus", "directory"].contains($0) }.joined(separator: ", ")

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

    private func read(_ secret: SetupTarget.Secret) async throws -> String? {
        while true {
            switch secret {
            case .none: return nil
            case .token(let isRequired):
                let typed = try await readHidden("Its token, which is not shown\(isRequired ? "" : " [none]"): ")
                if typed != nil || !isRequired { return typed }
            case .key:
                let typed = try await readHidden("Its key, which is not shown: the id, a space, and the key: ")
                if let typed, typed.split(separator: " ").count == 2 { return typed }
            }
        }
    }

    /// - Returns: `nil` for an empty line.
    private func readHidden(_ question: String) async throws -> String? {
        let console = console
        defer { console.error("") }
        do {
            let token = try await blocking {
                try SecretPrompt.read { try console.raw(question) }
            }
            return token.isEmpty ? nil : token
        } catch SecretPrompt.Failure.interrupted {
            throw CommandError(.failed, "interrupted; nothing was written")
        } catch SecretPrompt.Failure.ended {
            throw CommandError(.usage, "the input ended before the last answer; nothing was written")
        }
    }
}
