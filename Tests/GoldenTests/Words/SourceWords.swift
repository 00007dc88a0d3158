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

    /// The members of `Failure.Code` that stand for a code of ours: name and code, as they are declared; and the names
    /// after a full stop in all other sources.
    static func failureCodes() throws -> (declared: [String: String], used: Set<String>) {
        let declaration = Repository.root.appending("Sources/Core/Failures/FailureCode.swift")
        let text = String(decoding: try Files.read(declaration), as: UTF8.self)
        var declared: [String: String] = [:]
        for match in text.matches(of: /static let (\w+) = Self\(rawValue: "(\w+)"\)/) {
            declared[String(match.1)] = String(match.2)
        }
        var used: Set<String> = []
        for text in try sources(
            below: ["Core", "Daemon", "Destinations", "Staging", "Store", "Transport"], except: declaration)
        {
            used.formUnion(text.members())
        }
        return (declared, used)
    }

    private static func sources(below modules: [String], except left: FilePath? = nil) throws -> [SourceBytes] {
        var found: [SourceBytes] = []
        var folders = modules.map { Repository.root.appending("Sources").appending(FilePath($0)) }
        while let folder = folders.popLast() {
            for name in try Files.names(in: folder) {
                let path = folder.appending(name)
                if try FileStatus(at: path).isDirectory { folders.append(path) }
                if path != left, name.display.hasSuffix(".swift") {
                    found.append(SourceBytes(bytes: try Files.read(path)))
                }
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

    /// The names that follow a full stop: members, with or without the type before it.
    func members() -> Set<String> {
        var names: Set<String> = []
        for start in places(of: ".") {
            var end = start
            while end < bytes.count, isOfName(bytes[end]) { end += 1 }
            if end > start { names.insert(String(decoding: bytes[start..<end], as: UTF8.self)) }
        }
        return names
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

    private func isOfName(_ byte: UInt8) -> Bool {
        let character = Character(UnicodeScalar(byte))
        return character.isASCII && (character.isLetter || character.isNumber) || character == "_"
    }
}
