internal import Control
internal import Core
internal import Daemon

extension Verb {
    static let rescan: Verb = Verb(
        "rescan", "have folders looked through now",
        details: [
            "The daemon does that at its start, once an hour, and where the kernel has lost events. It is for what the kernel "
                + "does not tell: files written through another name or cut from outside.",
            "With --wait it ends when each folder was looked through, and says how many files were come across and how many of "
                + "them are new. Those settle then, as any new file does.",
        ],
        options: [
            Option("folder", "NAME", takes: .folders, "only this folder"),
            Option(flag: "wait", "until that is done"),
        ] + Option.client,
        examples: [
            ("sluice rescan", "All folders; does not wait."),
            ("sluice rescan --folder door --wait", "One, and what came of it."),
        ]
    ) { call in
        let request = RescanRequest(folder: call.arguments.text("folder"), wait: call.arguments.has("wait"))
        let reply = try await call.withClient { try await $0.rescan(request) }
        if call.json {
            try call.printJSON(reply)
        } else {
            for folder in reply.folders { try call.console.line(line(folder)) }
        }
        return .ok
    }
}

func line(_ folder: RescanView) -> String {
    let about = "\(printable(folder.name)) (\(printable(folder.path))): "
    // `absent: …`, `failed: …`: the folder was not scanned.
    guard folder.state == "watching" || folder.state == "scanning" else { return about + printable(folder.state) }
    guard let files = folder.files, let new = folder.new else { return about + "is being looked through" }
    return about + "\(files) \(files == 1 ? "file" : "files") found, \(new) of them new; \(folder.settling) settling"
}
