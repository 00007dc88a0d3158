internal import Glibc
internal import Synchronization

/// Places where a test can end the process like a power cut: with `SLUICE_TEST_CRASH=renamed:3` the process sends
/// SIGKILL to itself when `renamed` is reached for the third time. Without the variable it costs one comparison.
package enum CrashPoint {
    private static let plan: (name: String, nth: Int)? = {
        guard let text = getenv("SLUICE_TEST_CRASH").map({ String(cString: $0) }) else { return nil }
        let parts = text.split(separator: ":")
        guard let name = parts.first else { return nil }
        return (String(name), parts.count > 1 ? Int(parts[1]) ?? 1 : 1)
    }()
    private static let count = Mutex(0)

    package static func reached(_ name: String) {
        guard let plan, plan.name == name else { return }
        let now = count.withLock { count in
            count += 1
            return count
        }
        if now == plan.nth { kill(getpid(), SIGKILL) }
    }
}
