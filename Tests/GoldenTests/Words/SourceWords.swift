import API
import Core
import Glibc
import Linux
import TestKit

/// Words that no table of the program contains: found in its sources.
enum SourceWords {
    /// Names of the fields of log lines: the keys of the literals in calls like `log.notice("…", ["path": …])`.
    static func logFields() throws -> [String] {
        var names: Set<String> = []
        for text in try sources(below: ["Control", "Daemon", "Notices", "Receiver", "Shell", "Store", "Transport"]) {
            for level in ["debug", "info", "notice", "warning", "error"] {
                for start in text.places(of: "og.\(level)(") { names.formUnion(text.keys(ofCallAt: start)) }
            }
        }
        return names.sorted()
    }

    /// Codes of failures: `code: "…"`, the argument after the class of a failure, the first word of a refusal, and
    /// constants that are such codes.
    static func failureCodes() throws -> [String] {
        let classes = [
            "local", "config", "auth", "quota", "permanent", "transient", "protocol", "protocol`", "cancelled",
        ]
        let constants = [
            "code", "waitingCode", "skippedCode", "unusable", "refusal", "shortOfQuota", "wastedOnMetered",
            "sourceChanged", "removalUnknown", "perhapsThere", "otherThere", "moved", "unusableAnswer",
            "unreadableAnswer", "creationsUnknown", "otherOrigin", "(noTLS, onlyTLS)",
        ]
        let marks =
            classes.map { ".\($0)," } + constants.flatMap { ["static let \($0) =", "static let \($0) = ("] }
            + ["refusal(", "Refusal(", "failed(", "code:", ".absent,", ".backoff,", "(\"no_tls\","]
            // One of two.
            + [".reset ?", "\"connection_lost\" :", "ENOSPC ?", "\"target_full\" :", ".conflict:", ".unknownOffset:"]
        var codes: Set<String> = []
        for text in try sources(below: ["Core", "Daemon", "Destinations", "Staging", "Store"]) {
            for (word, before) in text.words() where marks.contains(where: { before.hasSuffix($0) }) {
                codes.insert(word)
            }
        }
        return codes.sorted()
    }

    private static func sources(below modules: [String]) throws -> [SourceBytes] {
        var found: [SourceBytes] = []
        var folders = modules.map { Repository.root.appending("Sources").appending(FilePath($0)) }
        while let folder = folders.popLast() {
            for name in try Files.names(in: folder) {
                let path = folder.appending(name)
                if try FileStatus(at: path).isDirectory { folders.append(path) }
                if name.display.hasSuffix(".swift") { found.append(SourceBytes(bytes: try Files.read(path))) }
            }
        }
        return found
    }
}

/// The bytes of one source file. Searched with memchr and memcmp, because generic searches are slow without
/// optimisation.
struct SourceBytes {
    let bytes: [UInt8]

    /// The end of each occurrence of `mark`.
    func places(of mark: String) -> [Int] {
        let mark = Array(mark.utf8)
        return bytes.withUnsafeBytes { text in
            guard let base = text.baseAddress else { return [] }
            var (found, start) = ([Int](), 0)
            while start + mark.count <= text.count,
                let hit = memchr(base + start, CInt(mark[0]), text.count - start - mark.count + 1)
            {
                start = UnsafeRawPointer(hit) - base + 1
                if memcmp(hit, mark, mark.count) == 0 { found.append(start + mark.count - 1) }
            }
            return found
        }
    }

    /// Each literal of letters a to z, digits and underscores, with up to 40 bytes of code before it.
    func words() -> [(word: String, before: String)] {
        places(of: "\"").compactMap { start in
            var end = start
            while end < bytes.count, isLetter(bytes[end]) { end += 1 }
            guard end > start, end < bytes.count, bytes[end] == UInt8(ascii: "\"") else { return nil }
            var edge = start - 1
            while edge > 0, bytes[edge - 1] == UInt8(ascii: " ") || bytes[edge - 1] == UInt8(ascii: "\n") { edge -= 1 }
            let before = String(decoding: bytes[max(0, edge - 40)..<edge], as: UTF8.self)
            return (String(decoding: bytes[start..<end], as: UTF8.self), before)
        }
    }

    /// The keys of dictionary literals in a call whose arguments begin at `start`.
    func keys(ofCallAt start: Int) -> [String] {
        var (keys, depth, index) = ([String](), 1, start)
        while index < bytes.count, depth > 0 {
            switch bytes[index] {
            case UInt8(ascii: "("), UInt8(ascii: "["): depth += 1
            case UInt8(ascii: ")"), UInt8(ascii: "]"): depth -= 1
            case UInt8(ascii: "\""):
                let end = endOfText(at: index + 1)
                if end + 1 < bytes.count, bytes[end + 1] == UInt8(ascii: ":") {
                    keys.append(String(decoding: bytes[(index + 1)..<end], as: UTF8.self))
                }
                index = end
            default: break
            }
            index += 1
        }
        return keys
    }

    /// The position of the quote that ends a text; values in it, `\(…)`, are skipped.
    private func endOfText(at start: Int) -> Int {
        var index = start
        while index < bytes.count, bytes[index] != UInt8(ascii: "\"") {
            guard bytes[index] == UInt8(ascii: "\\") else {
                index += 1
                continue
            }
            index += 2
            guard bytes[index - 1] == UInt8(ascii: "(") else { continue }
            var depth = 1
            while index < bytes.count, depth > 0 {
                if bytes[index] == UInt8(ascii: "(") { depth += 1 }
                if bytes[index] == UInt8(ascii: ")") { depth -= 1 }
                index += 1
            }
        }
        return index
    }

    private func isLetter(_ byte: UInt8) -> Bool {
        (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte) || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
            || byte == UInt8(ascii: "_")
    }
}
