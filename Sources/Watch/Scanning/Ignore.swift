internal import Core
internal import Linux

/// The ignore file of one directory.
enum Ignore: Equatable {
    case nothing
    case rules(IgnoreRules)
    /// It exists and cannot be read: no file is taken, since a person may have wanted to keep it here.
    case unreadable

    /// - Returns: The rules, and the problem in words.
    static func read(in folder: FolderStream, named path: FilePath) -> (ignore: Ignore, trouble: String?) {
        let file = path.appending(IgnoreRules.fileName)
        do {
            guard let content = try folder.read(IgnoreRules.fileName, limit: IgnoreRules.maxFileSize) else {
                return (.nothing, nil)
            }
            let rules = IgnoreRules(content)
            return (rules.isEmpty ? .nothing : .rules(rules), nil)
        } catch {
            return (
                .unreadable,
                "cannot read \(file.display) (\(words(error))); no file from its directory or below is uploaded until this is corrected"
            )
        }
    }
}

/// The reason why an ignore file cannot be read, for people.
private func words(_ error: SystemError) -> String {
    if error.isLink { return "it is a symbolic link, which may lead anywhere: replace it by a file" }
    if error.isOfWrongKind { return "it is not a regular file" }
    if error.isTooLarge { return "it has more than \(IgnoreRules.maxFileSize >> 10) KiB" }
    return error.reason
}

/// The ignore files that apply to the names of one directory.
struct IgnoreChain {
    /// The nearest first, each with the path from its directory to this one.
    private var links: [(rules: IgnoreRules, below: FilePath)] = []
    private var isClosed = false

    /// - Parameter below: The path from that directory to this one.
    mutating func add(_ ignore: Ignore, below: FilePath) {
        switch ignore {
        case .nothing: break
        case .rules(let rules): links.append((rules, below))
        case .unreadable: isClosed = true
        }
    }

    func ignores(_ name: UnsafeBufferPointer<UInt8>, isFolder: Bool = false) -> Bool {
        if isClosed { return true }
        // Nearly always the case, and a scan evaluates each name.
        if links.isEmpty { return false }
        for (rules, below) in links {
            let verdict: Bool?
            if below.isEmpty {
                verdict = rules.verdict(on: name, isFolder: isFolder)
            } else {
                verdict = (below.bytes + [UInt8(ascii: "/")] + Array(name)).withUnsafeBufferPointer {
                    rules.verdict(on: $0, isFolder: isFolder)
                }
            }
            if let verdict { return verdict }
        }
        return false
    }

    func ignores(_ name: FilePath, isFolder: Bool = false) -> Bool {
        name.bytes.withUnsafeBufferPointer { ignores($0, isFolder: isFolder) }
    }
}
