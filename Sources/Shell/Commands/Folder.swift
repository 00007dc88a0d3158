internal import API
internal import Control
internal import Core

extension Verb {
    static let folder: Verb = Verb(
        "folder", "accept the directory that has replaced the one of a watched folder", operands: "accept NAME",
        count: 2...2,
        details: [
            "The daemon remembers which directory each watched folder is. If another user's directory takes its place, "
                + "the folder is absent, and nothing in it is read, uploaded or deleted: any user who can write in the "
                + "parent directory could have put it there. Inspect the new directory, then `accept` it.",
            "It is not needed where the new directory belongs to root, to the daemon's user or to the owner of the one "
                + "before, on a removable disk, on a file system without owners (FAT, exFAT, NTFS), or where the "
                + "folder has a `require`.",
        ],
        options: Option.client,
        examples: [
            ("sluice folder accept door", "Accepts it, after `sluice status` has said why the folder is absent.")
        ]
    ) { call in
        let words = call.arguments.operands.map(\.lossyText)
        guard words[0] == "accept" else {
            throw Arguments.usage(
                "`\(printable(words[0]))` is not an action on a folder; the only action is `accept`", .folder)
        }
        let reply = try await call.withClient { try await $0.accept(folder: words[1]) }
        if call.json {
            try call.printJSON(reply)
        } else {
            for folder in reply.folders { try call.console.line(line(folder)) }
        }
        return .ok
    }
}
