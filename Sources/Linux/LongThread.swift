internal import CLinux
internal import Dispatch

/// Runs `body`, which waits in the kernel for as long as the process lives, on a thread of its own, and returns with it.
///
/// - Parameter name: At most 15 bytes; shown by `top -H`.
package func onLongThread(named name: String, _ body: @escaping @Sendable () -> Void) async {
    await withCheckedContinuation { continuation in
        // A serial queue that is its own root brings a thread that counts for no pool.
        DispatchQueue(label: name).async {
            _ = sluice_set_thread_name(name)
            body()
            continuation.resume()
        }
    }
}
