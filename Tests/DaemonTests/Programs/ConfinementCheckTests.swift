import Core
import Linux
import Testing

@testable import Daemon

@Suite("The report of how far programs are held to their proxy")
struct ConfinementCheckTests {
    @Test(
        "it names both parts, warns unless both hold, and says what is needed",
        arguments: [
            (4, true, ["TCP by Landlock (ABI 4)", "a filter of system calls"]),
            (
                3, true,
                ["TCP is not held: Landlock has ABI 3", "ABI 4 is needed (Linux 6.7", "a filter of system calls"]
            ),
            (0, true, ["no Landlock, or it is off", "/sys/kernel/security/lsm", "may be sent past policy"]),
            (7, false, ["TCP by Landlock (ABI 7)", "UDP, are not held", "may be sent past policy"]),
        ])
    func report(_ abi: Int, _ filters: Bool, _ parts: [String]) {
        let result = Confinement.Support(landlockABI: abi, filtersCalls: filters).check
        #expect(result.verdict == (abi >= 4 && filters ? .ok : .warning))
        for part in parts { #expect(result.detail.contains(part), "\(result.detail)") }
    }
}
