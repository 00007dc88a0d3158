internal import CLinux
internal import Glibc

/// Random bytes of the kernel (getrandom(2)).
package enum Random {
    package static func bytes(_ count: Int) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: count)
        // Fails only for a bad address, since it waits until the pool is ready.
        guard bytes.withUnsafeMutableBytes({ sluice_random($0.baseAddress, $0.count) }) == 0 else {
            fatalError("getrandom: \(String(cString: strerror(errno)))")
        }
        return bytes
    }

    package static func bits() -> UInt128 { bytes(16).reduce(0) { $0 << 8 | UInt128($1) } }

    /// A random number from 0 to 1.
    package static func jitter() -> Double { Double.random(in: 0...1) }
}
