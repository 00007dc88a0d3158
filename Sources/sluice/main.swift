import Glibc
import Shell

let words = Shell.words
// Before anything that starts a thread: threads inherit which signals are blocked.
let signals = try Shell.holdSignals(for: words)
exit(await Shell.run(words, console: .standard, signals: signals).rawValue)
