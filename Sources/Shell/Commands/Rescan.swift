internal import API
internal import Control
internal import Core

extension Verb {
    static let rescan: Verb = Verb(
        "rescan", "scan watched folders now, for files that no event reported",
        details: [
            "The daemon scans at its start, once an hour, and after the kernel lost events. Use this verb for changes "
                + "that the kernel does not report: files that were written through a hard link outside the folder, or "
                + "truncated without being opened.",
            "With --wait it returns when every folder has been scanned, and prints how many files it found, and "
                + "how many of them are new. New files then settle as usual.",
        ],
        options: [
            Option("folder", "NAME", takes: .folders, "only this folder"),
            Option(flag: "wait", "wait until the scan is complete"),
        ] + Option.client,
        examples: [
            ("sluice rescan", "Begins to scan all folders, and does not wait."),
            ("sluice rescan --folder door --wait", "Scans one folder, and shows the result."),
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
    // The folder was not scanned.
    guard folder.state.isWatched else { return about + printable(folder.state.rawValue) }
    guard let files = folder.files, let new = folder.new else { return about + "is being scanned" }
    return about + "\(files) \(files == 1 ? "file" : "files") found, \(new) of them new; \(folder.settling) settling"
}
