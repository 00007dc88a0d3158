package import Core
package import Linux

extension FolderSurvey {
    /// The resources that watching a folder needs.
    package struct Need: Hashable, Sendable {
        /// Directories that would have a watch; nothing is counted below unreadable ones.
        package var directories: Int
        /// Whether there are more: counting stopped.
        package var isCut: Bool
        /// Whether no events report changes there, so that it is polled.
        package var isPolled: Bool
        /// Files with names like those of sources being released, from any program; at most 1,000.
        package var releases: [FilePath] = []
    }

    private static let maxReleaseTokens = 1_000

    /// Counts the directories of a folder. Waits for the disk.
    ///
    /// - Throws: When the folder itself cannot be opened.
    package static func need(of rule: WatchRule, in folder: SourceFolder, atMost most: Int) throws(SystemError) -> Need
    {
        let top = try folder.open()
        var need = Need(directories: 0, isCut: false, isPolled: FileSystemKind.lacksChangeEvents(top))
        if need.isPolled { return need }
        var waiting: [FilePath] = [""]
        while let relative = waiting.popLast() {
            if need.directories == most {
                need.isCut = true
                return need
            }
            need.directories += 1
            guard rule.recursive else { continue }
            // The scan reports directories that it cannot read; here each counts as one directory.
            guard let stream = try? top.stream(relative) else { continue }
            do {
                while try stream.next({ name, kind in
                    if kind == .folder, !TemporaryNames.contains(name) {
                        waiting.append(relative.appending(FilePath(fromKernel: name)))
                    } else if need.releases.count < maxReleaseTokens, ReleaseToken.isName(FilePath(fromKernel: name)) {
                        need.releases.append(relative.appending(FilePath(fromKernel: name)))
                    }
                }) {}
            } catch { continue }
        }
        return need
    }
}
