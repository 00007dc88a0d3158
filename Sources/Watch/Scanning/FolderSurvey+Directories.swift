package import Core
package import Linux

extension FolderSurvey {
    /// What watching a folder takes.
    package struct Need: Hashable, Sendable {
        /// Directories that would have a watch; of those that cannot be read none below.
        package var directories: Int
        /// There are more: counting stopped.
        package var isCut: Bool
        /// Nothing tells of changes there, so that it is looked through from time to time.
        package var isPolled: Bool
        /// Files with names of sources that are being released, whoever made them; at most 1,000.
        package var releases: [FilePath] = []
    }

    private static let mostReleases = 1_000

    /// Counts the directories of a folder. Waits for the disk.
    ///
    /// - Throws: When the folder itself cannot be opened.
    package static func need(of rule: WatchRule, in folder: SourceFolder, atMost most: Int) throws(SystemError) -> Need
    {
        let top = try folder.open()
        var need = Need(directories: 0, isCut: false, isPolled: FileSystemKind.isSilent(top))
        if need.isPolled { return need }
        var waiting: [FilePath] = [""]
        while let relative = waiting.popLast() {
            if need.directories == most {
                need.isCut = true
                return need
            }
            need.directories += 1
            guard rule.recursive else { continue }
            // The scan tells of what it cannot read; here that is one directory.
            guard let stream = try? top.stream(relative) else { continue }
            do {
                while try stream.next({ name, kind in
                    if kind == .folder, !TemporaryNames.contains(name) {
                        waiting.append(relative.appending(FilePath(fromKernel: name)))
                    } else if need.releases.count < mostReleases, ReleaseToken.isName(FilePath(fromKernel: name)) {
                        need.releases.append(relative.appending(FilePath(fromKernel: name)))
                    }
                }) {}
            } catch { continue }
        }
        return need
    }
}
