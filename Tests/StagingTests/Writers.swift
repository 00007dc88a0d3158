import Core
import Linux
import Staging

/// Gives the same answer for every file.
struct FixedWriters: WriterDetecting {
    let answer: WriterSearch.Answer

    func findWriter(
        _ relative: FilePath, in folder: borrowing OpenFolder
    ) throws(SystemError) -> (status: FileStatus, answer: WriterSearch.Answer) {
        (try folder.status(at: relative), answer)
    }
}

extension SourceRelease {
    static let token = ReleaseToken(random: [1, 2, 3, 4, 5, 6, 7, 8])

    /// Asks the kernel.
    init(_ asset: AssetIdentity, _ act: Act, inDoubt: InDoubt = .stop) {
        self.init(asset, act, inDoubt: inDoubt, writers: WriterSearch(clocks: SystemClocks()))
    }

    init(_ asset: AssetIdentity, _ act: Act, inDoubt: InDoubt = .stop, writers: any WriterDetecting) {
        self.init(asset, act, token: Self.token, inDoubt: inDoubt, writers: writers)
    }
}

extension MoveTarget {
    /// The configuration fixes all of the path except the name.
    init(_ path: FilePath) { self.init(base: path.parent, relative: path.name) }
}
