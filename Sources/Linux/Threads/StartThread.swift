internal import CLinux
internal import Glibc

/// Starts a thread for `body`, which may block without limit. It ends when `body` returns.
///
/// - Parameter name: At most 15 bytes; shown by `ps -L` and `top -H`.
package func startThread(_ name: String, _ body: @escaping @Sendable () -> Void) throws(SystemError) {
    let box = Unmanaged.passRetained(ThreadBody(name: name, body: body))
    var thread = pthread_t()
    var attributes = pthread_attr_t()
    pthread_attr_init(&attributes)
    defer { pthread_attr_destroy(&attributes) }
    pthread_attr_setdetachstate(&attributes, CInt(PTHREAD_CREATE_DETACHED))
    let code = pthread_create(
        &thread, &attributes,
        { context in
            guard let context else { return nil }
            let box = Unmanaged<ThreadBody>.fromOpaque(context).takeRetainedValue()
            sluice_set_thread_name(box.name)
            box.body()
            return nil
        }, box.toOpaque())
    if code != 0 {
        box.release()
        throw SystemError(call: "pthread_create", subject: name, code: code)
    }
}

private final class ThreadBody: Sendable {
    let name: String
    let body: @Sendable () -> Void

    init(name: String, body: @escaping @Sendable () -> Void) {
        self.name = name
        self.body = body
    }
}
