import Core
import Glibc
import Linux
import Shell

// Writes the manual pages sluice(1) and sluice.yaml(5) into a folder: `make man`.
//
//     Manual FOLDER DATE
//
// It is a program of its own, because the text of the pages would make the shipped program larger.

let words = CommandLine.arguments
guard words.count == 3 else {
    Console.standard.error("usage: Manual FOLDER DATE")
    exit(64)
}
do {
    let folder = FilePath(words[1])
    try Files.makeFolders(folder, mode: 0o755)
    for (name, text) in [
        ("sluice.1", programPage(date: words[2])), ("sluice.yaml.5", settingsPage(date: words[2])),
    ] {
        try Files.publish(folder.appending(FilePath(name)), Array(text.utf8), mode: 0o644)
    }
} catch {
    Console.standard.error("Manual: \(error)")
    exit(1)
}
