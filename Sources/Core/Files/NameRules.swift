/// Names of files that are never uploaded: temporary files of programs that rename when they are done, and files that
/// operating systems create in every folder.
///
/// They include hidden names (with a leading dot): rsync, Samba, editors and desktops write to such names first. Case
/// does not matter. A rule's `exclude` adds to this list and never removes from it.
package enum TemporaryNames {
    /// The list as globs, for display.
    package static let globs: [String] =
        endings.map { "*" + $0 } + beginnings.map { $0 + "*" } + exactNames + [".*"]

    private static let endings = [
        ".part", ".partial", ".filepart", ".tmp", ".temp", ".crdownload", ".download", ".!qb", ".!ut", ".aria2",
        ".opdownload", ".swp", ".lock", ".incomplete", "~",
    ]
    private static let beginnings = ["~", ".sluice-"]
    private static let exactNames = [
        "thumbs.db", "desktop.ini", "@eadir", "@__thumb", "lost+found", "system volume information", "$recycle.bin",
    ]

    private static let endingBytes = endings.map { Array($0.utf8) }
    private static let exactNameBytes = exactNames.map { Array($0.utf8) }

    /// - Parameter allowsHidden: Names with a leading dot are treated like others; our own (`.sluice-…`) never are.
    package static func contains(_ name: UnsafeBufferPointer<UInt8>, allowsHidden: Bool = false) -> Bool {
        guard let first = name.first, let last = name.last else { return true }
        if first == UInt8(ascii: "~") || last == UInt8(ascii: "~") { return true }
        if first == UInt8(ascii: ".") && (!allowsHidden || isAlwaysHidden(name)) { return true }
        // Few names pass these two checks without need, and a scan calls this a million times.
        if mayEndTemporaryName(last.lowered), endingBytes.contains(where: { name.endsLike($0) }) { return true }
        return mayBeginExactName(first.lowered)
            && exactNameBytes.contains { $0.count == name.count && name.endsLike($0) }
    }

    package static func contains(_ name: FilePath, allowsHidden: Bool = false) -> Bool {
        name.bytes.withUnsafeBufferPointer { contains($0, allowsHidden: allowsHidden) }
    }

    /// Whether the program itself uses such names, in watched folders and elsewhere: for sources during their release,
    /// and for incomplete files.
    package static func isOwn(_ name: FilePath) -> Bool {
        let start = Array(".sluice-".utf8)
        return name.bytes.count >= start.count && zip(start, name.bytes).allSatisfy { $0 == $1.lowered }
    }

    private static func isAlwaysHidden(_ name: UnsafeBufferPointer<UInt8>) -> Bool {
        // rsync's temporary names: a dot, the name, a dot, six characters.
        if name.count > 8, name[name.count - 7] == UInt8(ascii: ".") { return true }
        return [
            ".sluice-", ".sluiceignore", ".nfs", ".fuse_hidden", ".goutputstream-", ".syncthing.", ".ds_store", "._",
            ".~", ".#",
        ]
        .contains {
            let start = Array($0.utf8)
            return name.count >= start.count && start.indices.allSatisfy { name[$0].lowered == start[$0] }
        }
    }

    private static func mayEndTemporaryName(_ last: UInt8) -> Bool {
        switch last {
        case UInt8(ascii: "t"), UInt8(ascii: "l"), UInt8(ascii: "p"), UInt8(ascii: "d"), UInt8(ascii: "b"),
            UInt8(ascii: "2"), UInt8(ascii: "k"), UInt8(ascii: "e"):
            true
        default: false
        }
    }

    private static func mayBeginExactName(_ first: UInt8) -> Bool {
        switch first {
        case UInt8(ascii: "t"), UInt8(ascii: "d"), UInt8(ascii: "@"), UInt8(ascii: "l"), UInt8(ascii: "s"),
            UInt8(ascii: "$"):
            true
        default: false
        }
    }
}

extension UnsafeBufferPointer<UInt8> {
    /// - Parameter ending: In lower case.
    fileprivate func endsLike(_ ending: [UInt8]) -> Bool {
        guard count >= ending.count else { return false }
        let start = count - ending.count
        for index in ending.indices where self[start + index].lowered != ending[index] { return false }
        return true
    }
}

/// The names that a folder's rule accepts: the built-in list, `exclude`, `include`, in this order.
package struct NameRules: Hashable, Sendable {
    private let include: [Glob]
    private let exclude: [Glob]
    private let allowsHidden: Bool
    private let needsPath: Bool
    private let marker: MarkerName?

    /// - Parameters:
    ///   - include: Empty accepts every name. A glob whose name part begins with a dot also accepts hidden names.
    ///   - exclude: Overrides `include`.
    ///   - marker: Its names are never accepted.
    package init(include: [String], exclude: [String], marker: MarkerName? = nil) {
        self.marker = marker
        self.include = include.map { Glob($0) }
        self.exclude = exclude.map { Glob($0) }
        allowsHidden = include.contains { FilePath($0).name.bytes.first == UInt8(ascii: ".") }
        needsPath = (self.include + self.exclude).contains(where: \.matchesPath)
    }

    /// - Parameters:
    ///   - name: One name, without a slash.
    ///   - folder: The directory of the name, below the rule's folder; empty at the top.
    package func matches(_ name: UnsafeBufferPointer<UInt8>, in folder: FilePath) -> Bool {
        if TemporaryNames.contains(name, allowsHidden: allowsHidden) { return false }
        if let marker, marker.isMarker(name) { return false }
        if !needsPath || folder.isEmpty { return matches(name, path: name) }
        return (folder.bytes + [UInt8(ascii: "/")] + Array(name)).withUnsafeBufferPointer { matches(name, path: $0) }
    }

    private func matches(_ name: UnsafeBufferPointer<UInt8>, path: UnsafeBufferPointer<UInt8>) -> Bool {
        // Not `contains(where:)`: these loops run for every name of a scan.
        for glob in exclude where glob.matches(glob.matchesPath ? path : name) { return false }
        if include.isEmpty { return true }
        for glob in include where glob.matches(glob.matchesPath ? path : name) { return true }
        return false
    }

    package func matches(_ relative: FilePath) -> Bool {
        relative.name.bytes.withUnsafeBufferPointer { matches($0, in: relative.parent) }
    }
}
