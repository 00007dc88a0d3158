internal import API
internal import Core
internal import Linux

extension Confinement.Support {
    /// How far programs with `network: policy` are held to their proxy here.
    var check: CheckResult {
        let tcp =
            holdsTCP
            ? "TCP by Landlock (ABI \(landlockABI))"
            : "TCP is not held: \(landlockABI == 0 ? "this kernel has no Landlock, or it is off" : "Landlock has ABI \(landlockABI) here"), "
                + "and ABI 4 is needed (Linux 6.7 or later, with `landlock` among the names in /sys/kernel/security/lsm)"
        let others =
            filtersCalls
            ? "other sockets by a filter of system calls (seccomp)"
            : "other sockets, like those for UDP, are not held: this process may set no filter of system calls (seccomp)"
        if isComplete { return CheckResult(.ok, "held to the proxy of `network: policy`: \(tcp), \(others)") }
        return CheckResult(
            .warning,
            "not wholly held to the proxy of `network: policy`: \(tcp); \(others); what is not held may be sent past "
                + "policy by a program that does not use the proxy of its environment")
    }
}
