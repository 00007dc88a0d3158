internal import Core
internal import Store

/// The files that may be sent to a destination.
struct UnblockedFiles {
    var all: Set<FileClass> = []
    /// Those that may only be continued, not begun.
    var begunOnly: Set<FileClass> = []
}
